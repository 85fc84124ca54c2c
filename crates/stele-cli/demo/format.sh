#!/bin/sh
# Prints a number of seconds as hours, minutes and seconds.
seconds=$1

hours=$((seconds / 3600))
minutes=$((seconds / 60))
rest=$((seconds % 60))

printf '%dh %02dm %02ds\n' "$hours" "$minutes" "$rest"
