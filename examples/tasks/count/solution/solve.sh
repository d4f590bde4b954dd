#!/bin/sh
cd /app
grep -c ERROR log.txt > count.txt
