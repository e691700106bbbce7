// Takes the numbers away again.
function () {
  if (globalThis.sandyardOverlay) globalThis.sandyardOverlay.remove();
}
