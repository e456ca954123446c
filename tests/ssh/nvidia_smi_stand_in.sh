#!/bin/sh
# A stand-in for nvidia-smi: two cards, any list of query fields. What it does is read from gpu-mode.
folder=${FLEETTUI_RIG_DIR:-$(dirname "$(dirname "$0")")}
read -r mode <"$folder/gpu-mode"
echo "$*" >>"$folder/gpu-calls"
case $mode in
hang) exec sleep 1000 ;;
mismatch)
    echo "Failed to initialize NVML: Driver/library version mismatch"
    exit 18 ;;
lost)
    echo "Unable to determine the device handle for GPU0000:01:00.0: GPU is lost.  Reboot the system to recover this GPU"
    exit 15 ;;
esac

fields='' kind=''
for word; do
    case $word in
    --query-gpu=*) kind=gpu fields=${word#*=} ;;
    --query-compute-apps=*) kind=apps fields=${word#*=} ;;
    -L) kind=list ;;
    esac
done

value() {
    case $1 in
    index) v=$gpu ;;
    uuid | gpu_uuid) v=GPU-0000000$gpu-0000-4000-8000-00000000000$gpu ;;
    name | gpu_name) v='NVIDIA GeForce RTX 4090' ;;
    driver_version) v=550.54.15 ;;
    memory.total) v=24564 ;;
    memory.used) v=$((1000 + 500 * gpu)) ;;
    memory.free) v=$((23100 - 500 * gpu)) ;;
    memory.reserved) v=464 ;;
    utilization.gpu) v=$((17 + gpu)) ;;
    utilization.memory) v=3 ;;
    temperature.gpu) v=41 ;;
    power.draw) v=61.25 ;;
    power.limit | enforced.power.limit) v=450.00 ;;
    fan.speed) v=30 ;;
    pstate) v=P8 ;;
    pci.bus_id | gpu_bus_id) v=00000000:0$((gpu + 1)):00.0 ;;
    mig.mode.current) v='[N/A]' ;;
    compute_cap) v=8.9 ;;
    pid) v=4242 ;;
    process_name) v=/usr/bin/ollama ;;
    used_memory | used_gpu_memory) v=900 ;;
    *)
        echo "Field \"$1\" is not a valid field to query."
        exit 2 ;;
    esac
    case $mode:$1 in
    not_available:memory.* | not_available:utilization.*) v='[N/A]' ;;
    esac
}

rows='0 1'
[ "$kind" = apps ] && rows=0
case $kind in
gpu | apps)
    for gpu in $rows; do
        line=''
        rest=$fields,
        while [ -n "$rest" ]; do
            value "${rest%%,*}"
            line="$line, $v"
            rest=${rest#*,}
        done
        echo "${line#, }"
    done ;;
list)
    for gpu in $rows; do
        echo "GPU $gpu: NVIDIA GeForce RTX 4090 (UUID: GPU-0000000$gpu-0000-4000-8000-00000000000$gpu)"
    done ;;
*) echo "NVIDIA-SMI 550.54.15" ;;
esac
