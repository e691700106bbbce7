// What typed text would go to: a field, nothing, or something in a frame that cannot be looked into.
function () {
  let element = document.activeElement;
  for (;;) {
    if (!element) return "nothing";
    if (element.shadowRoot && element.shadowRoot.activeElement) {
      element = element.shadowRoot.activeElement;
    } else if (element.tagName === "IFRAME" || element.tagName === "FRAME") {
      let inner = null;
      try { inner = element.contentDocument; } catch { /* another origin's */ }
      if (!inner) return "frame";
      element = inner.activeElement;
    } else {
      break;
    }
  }
  const plain = ["button", "submit", "reset", "checkbox", "radio", "file", "image", "range", "color", "hidden"];
  if (element.tagName === "TEXTAREA" || element.isContentEditable) return "field";
  if (element.tagName === "INPUT" && !plain.includes(element.type)) return "field";
  return "nothing";
}
