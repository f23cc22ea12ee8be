// What is painted over a picture: a canvas of its size, white where it is to be drawn anew.

export function painter(canvas, brush) {
  const context = canvas.getContext("2d");
  let last = null, painted = false;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left) / box.width * canvas.width, (event.clientY - box.top) / box.height * canvas.height];
  };
  const line = (to) => {
    context.strokeStyle = context.fillStyle = "#fff";
    context.lineCap = "round";
    context.lineWidth = Math.max(1, brush.value / 100 * Math.max(canvas.width, canvas.height));
    context.beginPath();
    context.moveTo(...(last ?? to));
    context.lineTo(...to);
    context.stroke();
    last = to;
    painted = true;
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    last = null;
    line(place(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (event.buttons && last) line(place(event));
  });
  for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
  return {
    // For a picture of these sides, of which nothing is painted.
    begin(width, height) {
      canvas.width = width;
      canvas.height = height;
      painted = false;
    },
    // A PNG, white on black; null where nothing is painted.
    read() {
      if (!painted) return null;
      const whole = document.createElement("canvas"), to = whole.getContext("2d");
      whole.width = canvas.width;
      whole.height = canvas.height;
      to.fillRect(0, 0, whole.width, whole.height);
      to.drawImage(canvas, 0, 0);
      return whole.toDataURL("image/png");
    },
  };
}
