#!/bin/sh
cd /app
awk '{ if (length($0) > length(l)) l = $0 } END { print l }' words.txt > longest.txt
