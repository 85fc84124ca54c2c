#!/bin/sh
# Compares what format.sh prints with what it should print.
failed=0

check() {
    got=$(sh format.sh "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    $1 is $got"
    else
        echo "FAIL  $1 is $got, expected $2"
        failed=1
    fi
}

check 0 '0h 00m 00s'
check 59 '0h 00m 59s'
check 61 '0h 01m 01s'
check 3725 '1h 02m 05s'
check 86399 '23h 59m 59s'

exit "$failed"
