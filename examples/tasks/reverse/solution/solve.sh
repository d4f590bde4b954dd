#!/bin/sh
cd /app
sed -n '1!G;h;$p' steps.txt > reversed.txt
