// The options of a list that was found before, by its number.
function (number) {
  const element = (globalThis.sandyardFound || [])[number];
  if (!element || !element.isConnected) return { problem: "unknown" };
  if (element.tagName !== "SELECT") return { problem: "other", tag: element.tagName.toLowerCase() };
  const options = [...element.options].slice(0, 500).map((option) => ({
    text: option.text.slice(0, 200), value: option.value.slice(0, 200), chosen: option.selected, off: option.disabled,
  }));
  return { options, count: element.options.length };
}
