// Shows each volume of the page: slices across three axes and the volume itself.
"use strict";
for (const box of document.querySelectorAll(".volume")) {
  const message = box.querySelector(".message"), say = (text) => { message.textContent = text; message.hidden = !text; };
  const show = async () => {
    const text = atob(box.querySelector("script").textContent.trim()), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const shown = new niivue.Niivue({ backColor: [0, 0, 0, 1], dragAndDropEnabled: false, isColorbar: true, logLevel: "error" });
    await shown.attachToCanvas(box.querySelector("canvas"));
    shown.opts.multiplanarShowRender = niivue.SHOW_RENDER.ALWAYS;
    shown.opts.multiplanarLayout = niivue.MULTIPLANAR_TYPE.GRID;
    const volume = await niivue.NVImage.new(bytes.buffer, "volume.nii", "gray", 1);
    volume.cal_min = Number(box.dataset.low);
    volume.cal_max = Number(box.dataset.high);
    shown.addVolume(volume);
    const kinds = { all: shown.sliceTypeMultiplanar, volume: shown.sliceTypeRender, axial: shown.sliceTypeAxial, coronal: shown.sliceTypeCoronal, sagittal: shown.sliceTypeSagittal };
    const apply = () => {
      const value = (name) => box.querySelector(`[name=${name}]`).value;
      shown.setSliceType(kinds[value("view")]);
      volume.colormap = value("colours");
      volume.cal_min = Number(value("low"));
      volume.cal_max = Number(value("high"));
      const cut = Number(value("cut"));
      shown.setClipPlane([cut > 0 ? 0.5 - cut : 2, 270, 0]);
      shown.updateGLVolume();
    };
    box.addEventListener("input", apply);
    apply();
    say("");
    box.dataset.ready = "yes";
  };
  show().catch((error) => say(`This browser cannot draw the volume: ${error.message || error}`));
}
