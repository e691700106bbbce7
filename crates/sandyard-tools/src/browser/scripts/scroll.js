// Scrolls what is in the middle of the page, or the page. Says whether anything moved.
function (by) {
  const moves = (element) => {
    const before = element.scrollTop;
    element.scrollBy({ top: by, behavior: "instant" });
    return element.scrollTop !== before;
  };
  const top = document.scrollingElement || document.documentElement;
  let element = document.elementFromPoint(innerWidth / 2, innerHeight / 2);
  for (; element; element = element.parentElement || (element.getRootNode() || {}).host) {
    if (element === top || element === document.body) break;
    const style = getComputedStyle(element);
    if (/auto|scroll|overlay/.test(style.overflowY) && element.scrollHeight > element.clientHeight && moves(element)) {
      return true;
    }
  }
  return top ? moves(top) : false;
}
