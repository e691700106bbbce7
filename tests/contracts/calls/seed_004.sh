#!/bin/sh
# The calls of seed 004's curl session. $1 is the server; {sandbox_id} is what the first call answered.
set -eu

created=$(curl -sS -X POST "$1/api/sandboxes/" \
  -H "Content-Type: application/json" \
  -d '{
    "project_name": "test",
    "memory_limit": "1g",
    "cpu_limit": "1.0"
  }')
echo "$created"
sandbox_id=$(printf %s "$created" | sed 's/.*"sandbox_id": *"\([^"]*\)".*/\1/')

curl -sS -X POST "$1/api/sandboxes/$sandbox_id/execute" \
  -H "Content-Type: application/json" \
  -d '{
    "command": ["node", "--version"],
    "workdir": "/workspace"
  }'
echo

curl -sS "$1/api/sandboxes/"
echo

curl -sS -X DELETE "$1/api/sandboxes/$sandbox_id"
echo
