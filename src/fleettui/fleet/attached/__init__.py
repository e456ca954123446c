"""The fleet as a running `fleettui serve` has it, for front ends that do not poll themselves."""
