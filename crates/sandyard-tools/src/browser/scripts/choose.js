// Chooses an option of a list that was found before, by its text or else its value.
function (number, wanted) {
  const element = (globalThis.sandyardFound || [])[number];
  if (!element || !element.isConnected) return { problem: "unknown" };
  if (element.tagName !== "SELECT") return { problem: "other", tag: element.tagName.toLowerCase() };
  if (element.disabled) return { problem: "off" };
  const options = [...element.options];
  const clean = (text) => text.trim().toLowerCase();
  const option = options.find((option) => option.text === wanted || option.label === wanted)
    || options.find((option) => option.value === wanted)
    || options.find((option) => clean(option.text) === clean(wanted));
  if (!option) return { problem: "none", options: options.slice(0, 50).map((option) => option.text.slice(0, 100)) };
  if (option.disabled) return { problem: "off" };
  element.focus();
  option.selected = true;
  element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  element.dispatchEvent(new Event("change", { bubbles: true }));
  return { chosen: option.text };
}
