// The official client of JavaScript against the tool server of a sandbox.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const { MCP_URL, MCP_BASE, MCP_KEY } = process.env;
const headers = { Authorization: `Bearer ${MCP_KEY}` };

async function connect(transport) {
  const client = new Client({ name: "suite", version: "1.0.0" });
  await client.connect(transport);
  return client;
}

const streamable = () => new StreamableHTTPClientTransport(new URL(MCP_URL), { requestInit: { headers } });
const textOf = (result) => result.content.map((part) => part.text ?? "").join("\n");

test("lists and calls over streamable HTTP", async () => {
  const client = await connect(streamable());
  const { tools } = await client.listTools();
  assert.ok(tools.length > 40, `${tools.length} tools`);
  const result = await client.callTool({ name: "run_command", arguments: { command: "echo from javascript" } });
  assert.match(textOf(result), /from javascript/);
  await client.close();
});

test("lists and calls over the older transport", async () => {
  const eventSourceInit = { fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...headers } }) };
  const transport = new SSEClientTransport(new URL(`${MCP_BASE}/sse`), { eventSourceInit, requestInit: { headers } });
  const client = await connect(transport);
  const result = await client.callTool({ name: "run_command", arguments: { command: "echo by events" } });
  assert.match(textOf(result), /by events/);
  await client.close();
});

test("hears of progress", async () => {
  const client = await connect(streamable());
  const steps = [];
  // However slow a busy machine is to tell what it does, it does not end before it was received.
  const command = "for i in 1 2 3; do echo step $i; sleep 1; done; until [ -e /tmp/js-received ]; do sleep 0.1; done";
  const call = { name: "Bash", arguments: { session_name: "js", command, timeout: 180 } };
  const received = { name: "run_command", arguments: { command: "touch /tmp/js-received" } };
  const onprogress = (step) => steps.push(step) === 1 && client.callTool(received);
  const result = await client.callTool(call, undefined, { onprogress, timeout: 200_000 });
  assert.match(textOf(result), /step 3/);
  assert.ok(steps.length > 0);
  await client.close();
});

test("cancels", async () => {
  const client = await connect(streamable());
  const controller = new AbortController();
  const call = { name: "Bash", arguments: { session_name: "js-cancel", command: "echo begun; sleep 4567" } };
  // What it is told says whether the command runs.
  const onprogress = ({ message }) => message?.includes("begun") && controller.abort("enough");
  const pending = client.callTool(call, undefined, { signal: controller.signal, onprogress, timeout: 200_000 });
  await assert.rejects(pending);
  const retry = { name: "Bash", arguments: { session_name: "js-cancel", command: "echo free" } };
  for (let attempts = 0; ; attempts++) {
    const result = await client.callTool(retry);
    if (!result.isError) break;
    assert.ok(attempts < 600, textOf(result));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await client.close();
});

test("a failure is a result", async () => {
  const client = await connect(streamable());
  const result = await client.callTool({ name: "Read", arguments: { file_path: "/no/such/file" } });
  assert.equal(result.isError, true);
  await client.close();
});
