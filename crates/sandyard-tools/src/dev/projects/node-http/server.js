// PROJECT_NAME: a page and a small API, with Node's own library only.
const http = require("node:http");

const page = `<!doctype html>
<html lang="en">
  <head><meta charset="utf-8"><title>PROJECT_NAME</title></head>
  <body><h1>PROJECT_NAME</h1><p id="hello"></p>
    <script>
      fetch("api/hello").then((answer) => answer.json()).then((hello) => {
        document.querySelector("#hello").textContent = hello.message;
      });
    </script>
  </body>
</html>
`;

const server = http.createServer((request, response) => {
  const answer = (status, type, body) => {
    response.writeHead(status, { "Content-Type": type });
    response.end(body);
  };
  if (request.url === "/") {
    answer(200, "text/html; charset=utf-8", page);
  } else if (request.url === "/api/hello") {
    answer(200, "application/json", JSON.stringify({ message: "hello" }));
  } else {
    answer(404, "application/json", JSON.stringify({ error: "not found" }));
  }
});

const port = Number(process.env.PORT ?? 3000);
server.listen(port, "0.0.0.0", () => console.log(`listening on port ${port}`));
