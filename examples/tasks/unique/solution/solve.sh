#!/bin/sh
cd /app
sort -u visits.txt > unique.txt
