"""The calls of seed 002's example: login, headers, envelope. Run as a program with the server's URL."""

import asyncio
import sys
import uuid

import httpx

BASE_URL = sys.argv[1]


async def sandbox_demo():
    client = httpx.AsyncClient(
        timeout=120.0,
        http2=False,
        headers={
            "User-Agent": "SandboxClient/1.0",
            "X-Request-ID": str(uuid.uuid4()),
            "Content-Type": "application/json",
        },
    )

    r = await client.post(
        f"{BASE_URL}/api/v1/auth/login/swagger",
        params={"username": "sandbox_test", "password": "TestPass123!"},
    )
    token = r.json()["access_token"]
    client.headers["Authorization"] = f"Bearer {token}"

    r = await client.post(f"{BASE_URL}/agent/sandboxes/sandboxes/create", json={"user_id": "demo"})
    sandbox_id = r.json()["data"]["sandbox_id"]
    print(f"Created: {sandbox_id}")

    r = await client.post(
        f"{BASE_URL}/agent/sandboxes/sandboxes/run-cmd",
        json={"sandbox_id": sandbox_id, "command": "python3 --version"},
    )
    print(f"Output: {r.json()['data']['output']}")

    await client.delete(f"{BASE_URL}/agent/sandboxes/sandboxes/{sandbox_id}")
    print("Deleted")

    await client.aclose()


asyncio.run(sandbox_demo())
