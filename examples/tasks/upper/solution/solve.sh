#!/bin/sh
cd /app
tr a-z A-Z < poem.txt > upper.txt
