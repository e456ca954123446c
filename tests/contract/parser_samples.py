# ruff: noqa: E501 - lines as machines print them
"""Answers to sections that have no sample file, as the loops of a machine gave them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from fleettui.probes.loops import loop_command

ROW = (
    b"22905, 1659, 97, 61, 212.41, 45, 0, GPU-5f1c1b8e-0000-4000-8000-000000000001, NVIDIA GeForce RTX 4090, "
    b"550.54.15, 24564, 450.00, P2, None, [N/A], 00000000:01:00.0\n"
)
OWN_SAMPLES: Mapping[str, bytes] = {
    "fast": ROW + ROW.replace(b", 0, GPU", b", 1, GPU").replace(b"22905", b"[GPU is lost]"),
    "status": b"/sys/bus/pci/drivers/nvidia/0000:01:00.0/power/runtime_status:suspended\n",
    "hung": b"hung 4242 D",
    "condition": b"0, GPU-5f1c, Enabled, P8, 0, 8, 16, 1, 4, 0, 2, No, 0x0000000000000024, HMM, 8.9, 00000000:01:00.0\n"
    b"1, GPU-5f1d, Disabled, P0, 99, 16, 16, 4, 4, [N/A], [N/A], [N/A], 0x0000000000000000, None, 12.0, 00000000:02:00.0\n",
    "masks": b"0x0000000000000024, 0x1, 0xffffffffffffffff, 0x, 0xg, [N/A]",
    "list": b"GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-a)\n  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n"
    b"  MIG 1g.10gb     Device  1: (UUID: MIG-2)\n",
    "xid": b"5122.20\n[  512.204417] NVRM: Xid (PCI:0000:3b:00): 79, pid=2104, name=python3, GPU has fallen off the bus.\n"
    b"[  900.000001] host kernel: NVRM: Xid (PCI:0000:3b:00 GPU-I:02): 31, pid='<unknown>', MMU Fault\n",
    "owners": b"   4242 ollama   /usr/local/bin/ollama runner --model /x/sha256-aa --port 1\n 99 root [kworker]\n",
    "unbound": b"unbound 0000:03:00.0\nunbound 0000:0c:00.0\ntool rocm-smi\n",
    # Found by make fuzz.
    "tool": b"tool ro\x1b]0;x\x07cm-smi\n",
    "long-root": b"/dev/" + b"x" * 900 + b" " + b"y" * 900 + b" rw,ro",
    "load": b"0.60 0.87 1.98 2/141 25734",
    "uptime": b"21719.71 28093.46",
    "cpuinfo": b"processor\t: 0\nmodel name\t: AMD EPYC\nprocessor\t: 1\nmodel name\t: AMD EPYC\n# processors    : 4\n",
    "cpus": b"0-63,128-191",
    "os": b'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nNAME="Debian GNU/Linux"\nVERSION_ID="12"\nID=debian\n',
    "host": b"boot dcfe7ca1-7aca-4474-8f01-13c57e46846f\nonline 0-1\nallowed \t0-1\ncontainer docker\ncgroup 0::/\n",
    "uname": b"Linux 6.18.44 x86_64",
    "runtime": b"Docker version 28.2.2, build e6534b4",
    "psi": b"some avg10=0.00 avg60=1.25 avg300=0.00 total=0\nfull avg10=12.00 avg60=0.50 avg300=0.00 total=0\n",
    "swaps": b"Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/zram0 partition 8388604 1024 100\n/dev/sda2 partition 99 1 -2\n",
    "limits": b"MemTotal:       24684096 kB\nLimit: 8589934592 1073741824 /docker/x\nLimit: 9223372036854771712 4096 \n",
    "cgroup": b"cache 536870912 /docker/x\ncache 1 /user.slice\ncpu 250000 100000 /docker/x\ncpu max 100000 \n",
    "net": b"eth0: 1428329208   43288    0    0    0     0          0         0  3436550   28487    0    0    0     0       0          0\n",
    "links": b"device eth0\nvirtual ifb0\nbridge br0\nslave eth1\ntun tun0\n",
    "df": b"Filesystem     Type  1024-blocks     Used Available Capacity Mounted on\n"
    b"tmpfs          tmpfs    24684096        0  24684096       0% /dev/shm\n"
    b"/dev/vda       ext4    264212084 23417848  82973064      23% /\n"
    b"tank/a         zfs     100000000 1000 99999000 1% /tank/a\ntank/b zfs 100000000 1000 99999000 1% /tank/b\n",
    "blocks": b"sys nvme0n1 500118192 0 Samsung SSD\nsys sda 1953525168 1 -\nmpath dm-0 sda sdb\n",
    "clock": b"1796030488.471197737",
    "who": b"/usr/bin/fish\nops\nops video render\n",
    "journal": b"-- Logs begin at Mon 2026-01-05 --\n2026-11-30T09:00:00+0000 ada kernel: usb 1-1: new device\n",
    "log": b"2026-03-10T09:15:30+0000 ada kernel: NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.\n"
    b"2026-03-10T09:15:31+01:00 ada ollama[174]: \x1b[31mlevel=INFO\x1b[0m\n      goes on\n-- Reboot --\nrc 0\n",
    "dmesg": b"5122.20\n[ 5100.204417] NVRM: loading\n[bad] x\n<6>[ 5101.5] usb 1-1: new device\n",
    "logfiles": b"== /var/log/ollama.log\n[GIN] 200 \x1b[97m\n=x /var/log/messages\n== /etc/shadow\nroot\n",
    "root": b"/dev/vda ext4 rw,relatime",
    "sockets": b"0100007F:2CAA 3\n00000000000000000000000001000000:2CAA 3\n00000000:1F90 0\n3\nmore\n",
    "peers": b"   0: 0100007F:2CAA 0700000A:C350 01 00000000:00000000 00:00000000 00000000     0 0 1\n"
    b"   1: 0000000000000000FFFF00000100000A:2CAA 0000000000000000FFFF00000800000A:9C40 01 0:0 00:0 0 0 0 1\n",
    "servers": b"   4242       1 /usr/local/bin/ollama serve\n   4300    4242 /usr/bin/llama-server --port 40121\n",
    "settings": b"OLLAMA_HOST=0.0.0.0:11434\nOLLAMA_NUM_PARALLEL=4\nOLLAMA_KEEP_ALIVE=24h\nOLLAMA_X\n",
    "listen": b"   0: 0100007F:2CAA 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0 0 1\n"
    b"   1: 00000000000000000000000001000000:2CAA 00000000000000000000000000000000:0000 0A 0:0 00:0 0 0 0 1\n",
    "times": b"2318-11-24T02:50:18.929807807+08:00\nTue, 10 Mar 2026 09:15:30 GMT\n0001-01-01T00:00:00Z\n",
    "lscpu": b"Architecture:  x86_64\nCPU(s):  32\nModel name:  X\nThread(s) per core:  2\nCore(s) per socket:  8\nSocket(s):  2\n",
    "core-ids": b"physical id\t: 0\ncore id\t\t: 0\nphysical id\t: 0\ncore id\t\t: 0\nphysical id\t: 1\ncore id\t\t: 0\n",
    "profile": b"0, NVIDIA RTX 4000 Ada Generation, 20475, 8.9, 570.124.06\n1, NVIDIA GB10, [N/A], 12.1, 580.95.05\n",
    "capabilities": b"8.9\n8.10\n12.0\n8\n[N/A]\n9.x\n",
    "powershell": b"\xff\xfe" + "#< CLIXML\r\n0, GPU-a, NVIDIA X\r\n".encode("utf-16-le"),
    "tasks": b"Image Name                     PID Session Name\r\nnvidia-smi.exe  4242 Console  1  9,000 K\r\n",
    "request": b"17 stat gpu:index:name get:11434/api/ps",
    "command": loop_command("facts", "0123456789abcdef").encode(),
    "running": b'{"running":[{"model":"m1","state":"ready","cmd":"llama-server --api-key s3cret","proxy":"http://localhost:9999","ttl":300,"name":"Model One","description":""},{"model":"m2","state":"starting","cmd":"","proxy":"","ttl":0,"name":"","description":""}]}\n',
    "swap": b'{"object":"list","data":[{"id":"m1","object":"model","created":1,"owned_by":"llama-swap","status":{"value":"loaded"},"meta":{"llamaswap":{"type":"model","aliases":["gpt-4o"]},"n_ctx":8192}},{"id":"far/m3","object":"model","created":1,"owned_by":"llama-swap","meta":{"llamaswap":{"type":"peer","peerID":"far"}}}]}\n',
    "show": json.dumps({
        "model_info": {
            "general.architecture": "lfm2", "general.file_type": 15, "general.parameter_count": 1170340608,
            "lfm2.block_count": 16, "lfm2.attention.head_count": 32, "lfm2.attention.head_count_kv": [0, 0, 8, 0],
            "lfm2.embedding_length": 2048, "lfm2.shortconv.l_cache": 3, "lfm2.attention.causal": True,
            "tokenizer.ggml.tokens": ["a", "]", '"'], "tokenizer.ggml.merges": None,
        },
        "projector_info": {"general.parameter_count": 94000000},
        "tensors": [
            {"name": "token_embd.weight", "type": "Q6_K", "shape": [2048, 65536]},
            {"name": "blk.0.ffn_down.weight", "type": "Q4_K", "shape": [7168, 2048]},
        ],
        "capabilities": ["completion", "tools"],
    }).encode(),
    "amd-process": b"amd-smi\n"
    + json.dumps([{"gpu": 0, "process_list": [{"process_info": {"name": "ollama", "pid": 77, "mem_usage": {"value": 9, "unit": "MB"}}}]}]).encode(),
}  # fmt: skip
