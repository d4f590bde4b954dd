#!/bin/sh
# The reward is 1 if the file is as it should be, and 0 otherwise.
cd /app
if test "$(tr -d ' \n' < count.txt)" = 2; then reward=1; else reward=0; fi
echo $reward > /logs/verifier/reward.txt
