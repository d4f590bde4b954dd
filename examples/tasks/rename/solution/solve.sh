#!/bin/sh
cd /app
mv draft.md final.md
