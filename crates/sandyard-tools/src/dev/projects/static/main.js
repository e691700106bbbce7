const button = document.querySelector("#count");
let count = 0;

button.addEventListener("click", () => {
  count += 1;
  button.textContent = String(count);
});
