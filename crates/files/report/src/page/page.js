(() => {
  const viewer = document.getElementById("viewer");
  const image = viewer.querySelector("img");
  const [title, count, detail] = viewer.querySelectorAll("p > *");
  const steps = viewer.querySelectorAll(".previous, .next");
  let row = [];
  let at = 0;

  // Pictures of a row replace one another in place, so that their differences blink.
  const show = (index) => {
    at = (index + row.length) % row.length;
    const figure = row[at].closest("figure");
    const source = figure.querySelector("img");
    image.src = source.src;
    image.alt = source.alt;
    image.style.setProperty("--ratio", source.naturalWidth / source.naturalHeight);
    image.style.imageRendering = Math.max(source.naturalWidth, source.naturalHeight) < 768 ? "pixelated" : "auto";
    title.textContent = figure.querySelector("strong").textContent;
    detail.textContent = figure.querySelector(".detail")?.textContent ?? "";
    count.textContent = row.length > 1 ? `${at + 1} of ${row.length}` : "";
    for (const step of steps) step.hidden = row.length === 1;
  };

  for (const group of document.querySelectorAll(".row")) {
    const buttons = [...group.querySelectorAll(".zoom")];
    buttons.forEach((button, index) => button.addEventListener("click", () => {
      row = buttons;
      show(index);
      viewer.showModal();
    }));
  }
  viewer.querySelector(".previous").addEventListener("click", () => show(at - 1));
  viewer.querySelector(".next").addEventListener("click", () => show(at + 1));
  viewer.querySelector(".close").addEventListener("click", () => viewer.close());
  image.addEventListener("click", () => show(at + 1));
  viewer.addEventListener("click", (event) => { if (event.target === viewer) viewer.close(); });
  viewer.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") show(at - 1);
    if (event.key === "ArrowRight") show(at + 1);
  });
})();
