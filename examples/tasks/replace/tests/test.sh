#!/bin/sh
# The reward is 1 if the file is as it should be, and 0 otherwise.
cd /app
if test "$(cat text.txt | tr '\n' '/')" = 'The color of a color wheel/has no color of its own./'; then reward=1; else reward=0; fi
echo $reward > /logs/verifier/reward.txt
