"""The `mcp-gateway` that E2B's SDKs start in a sandbox: several MCP servers behind one address and one token.

| module | holds |
|---|---|
| `command` | the command line: prepare, start the gateway in the background, wait until it answers |
| `catalog` | the servers that are installed here, by the names the SDKs know |
| `checkout` | servers that come from a repository: `github/owner/name` |
| `serve` | the gateway itself, over fastmcp's proxy |
"""
