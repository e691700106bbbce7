// Where the first element of a selector is, brought into view. Open shadow roots and frames of the same origin count.
function (selector) {
  const find = (root, depth) => {
    const found = root.querySelector(selector);
    if (found || depth > 8) return found;
    let remaining = 20000;
    for (const element of root.querySelectorAll("*")) {
      if (remaining-- === 0) break;
      let inner = element.shadowRoot;
      if (element.tagName === "IFRAME" || element.tagName === "FRAME") {
        try { inner = element.contentDocument; } catch { /* another origin's */ }
      }
      const deeper = inner && find(inner, depth + 1);
      if (deeper) return deeper;
    }
    return null;
  };
  let element;
  try {
    element = find(document, 0);
  } catch (error) {
    return { problem: "bad" };
  }
  if (!element) return { problem: "none" };
  element.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.height === 0) return { problem: "hidden" };
  let x = box.left + box.width / 2;
  let y = box.top + box.height / 2;
  for (let view = element.ownerDocument.defaultView; view && view !== window; view = view.parent) {
    const frame = view.frameElement;
    if (!frame) break;
    const outer = frame.getBoundingClientRect();
    x += outer.left + frame.clientLeft;
    y += outer.top + frame.clientTop;
  }
  return { x, y };
}
