"""PROJECT_NAME: a page and a small API."""

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

app = FastAPI(title="PROJECT_NAME")


@app.get("/", response_class=HTMLResponse)
def page() -> str:
    return "<!doctype html><title>PROJECT_NAME</title><h1>PROJECT_NAME</h1><p>The API is described at <a href='docs'>docs</a>.</p>"


@app.get("/api/hello")
def hello() -> dict[str, str]:
    return {"message": "hello"}
