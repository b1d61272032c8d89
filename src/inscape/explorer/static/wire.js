// Arrays on the wire: a header in JSON, then the arrays; the counterpart of wire.py.

const KINDS = { Uint8Array, Uint16Array, Uint32Array, Float32Array, Float64Array };

/** Return the facts and the arrays of an answer; the arrays lie on its bytes. */
export function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const { arrays: table, ...facts } = JSON.parse(text);
  const arrays = {};
  for (const [name, entry] of Object.entries(table)) {
    const kind = KINDS[entry.kind];
    if (!kind) throw new Error(`unknown kind of array: ${entry.kind}`);
    arrays[name] = new kind(buffer, 4 + length + entry.at, entry.length);
  }
  return { facts, arrays };
}

/** Return the bytes of a text in base64. */
export function fromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  return bytes.buffer;
}
