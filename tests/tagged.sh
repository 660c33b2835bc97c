#!/bin/sh
# tagged.sh "TAG..." TEST...: prints the tests whose first line begins with one of these tags in brackets: // [cuda slow] What it tests.
tags=$1
shift
for test; do
    IFS= read -r line < "$test"
    case $line in
    "// ["* | "# ["*)
        line=${line#*[}
        for tag in $tags; do
            case " ${line%%]*} " in *" $tag "*) echo "$test"; break ;; esac
        done ;;
    esac
done
