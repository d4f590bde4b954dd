#!/bin/sh
cd /app
printf '%s\n' 'Hello, world!' > hello.txt
