#!/bin/sh
cd /app
sed 's/colour/color/g' text.txt > new && mv new text.txt
