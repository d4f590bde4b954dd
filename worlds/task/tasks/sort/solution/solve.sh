#!/bin/sh
cd /app
sort names.txt > sorted.txt
