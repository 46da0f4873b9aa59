// The header of a safetensors file, read by two ranges: the length in 8 bytes, then that many bytes of JSON. The file is foreign:
// whatever it says, the outcome is a table or a sentence.

export const HEADER_MAX = 100 * 1024 * 1024;  // as the format's own reader has it
const TENSORS_MAX = 2_000_000;
const DEPTH_MAX = 3;  // {"tensor": {"shape": [...]}}
const NAME = /^[\w.]{1,32}$/;
const BITS = {
  BOOL: 8, U8: 8, I8: 8, F8_E5M2: 8, F8_E4M3: 8, F8_E8M0: 8, F4: 4, F6_E2M3: 6, F6_E3M2: 6, I16: 16, U16: 16, F16: 16, BF16: 16, I32: 32, U32: 32, F32: 32,
  F64: 64, I64: 64, U64: 64, C64: 64,
};

/** What is wrong with a header, as a sentence. */
export class HeaderError extends Error {}

/**
 * Reads the header of a file of `size` bytes. `range(first, last)` resolves to those bytes as a Uint8Array.
 * Returns {tensors: [{name, dtype, shape, elements, bytes}], metadata: [[name, value]], headerBytes, dataBytes}.
 */
export async function readHeader(range, size) {
  if (size < 10) throw new HeaderError(`The file has ${size} bytes, too few for a safetensors header.`);
  const length = headerLength(await range(0, 7), size);
  const bytes = await range(8, 7 + length);
  if (bytes.length !== length) throw new HeaderError('The header ended early.');
  return parseHeader(bytes, size - 8 - length);
}

function headerLength(bytes, size) {
  if (bytes.length !== 8) throw new HeaderError('The file ended before the length of its header.');
  const length = new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true);
  if (length > BigInt(size - 8)) throw new HeaderError('The header claims to be longer than the file. This is not a safetensors file.');
  if (length > BigInt(HEADER_MAX)) throw new HeaderError(`The header has ${length} bytes; the console reads up to 100 MiB.`);
  if (length < 2n) throw new HeaderError('The header is empty.');
  return Number(length);
}

/** The same for the bytes of a header. `dataBytes`: how many bytes of the file lie behind it. */
export function parseHeader(bytes, dataBytes) {
  checkNesting(bytes);
  const header = parseJson(bytes);
  if (!isRecord(header)) throw new HeaderError('The header is not a JSON object.');
  const tensors = [];
  let metadata = [];
  for (const [name, about] of Object.entries(header)) {
    if (name === '__metadata__') metadata = readMetadata(about);
    else tensors.push(readTensor(name, about, dataBytes));
  }
  tensors.sort((one, other) => one.begin - other.begin);
  return { tensors, metadata, headerBytes: bytes.length, dataBytes };
}

// Before JSON.parse, which would build whatever stands there: a header is flat, so depth and number of values are bounded.
function checkNesting(bytes) {
  let depth = 0, values = 0, quoted = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (quoted) {
      if (byte === 0x5c) at++;
      else if (byte === 0x22) quoted = false;
    } else if (byte === 0x22) quoted = true;
    else if (byte === 0x7b || byte === 0x5b) depth++;
    else if (byte === 0x7d || byte === 0x5d) depth--;
    else if (byte === 0x2c) values++;
    if (depth > DEPTH_MAX) throw new HeaderError('The header is nested deeper than a safetensors header can be.');
    if (values > TENSORS_MAX * 4) throw new HeaderError('The header has more values than the console shows.');
  }
}

function parseJson(bytes) {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch (fault) {
    throw new HeaderError('The header is not JSON. This is not a safetensors file.');
  }
}

function readMetadata(about) {
  if (!isRecord(about)) throw new HeaderError('The metadata of the header is not an object.');
  return Object.entries(about).map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
}

function readTensor(name, about, dataBytes) {
  const wrong = (what) => new HeaderError(`The tensor ${JSON.stringify(name.slice(0, 100))} has ${what}.`);
  if (!isRecord(about)) throw wrong('no description');
  const { dtype, shape, data_offsets: offsets } = about;
  if (typeof dtype !== 'string' || !NAME.test(dtype)) throw wrong('no dtype');
  if (!Array.isArray(shape) || shape.length > 64 || !shape.every(isCount)) throw wrong('a shape that is not a list of sizes');
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount) || offsets[0] > offsets[1]) throw wrong('no place in the file');
  if (offsets[1] > dataBytes) throw wrong('a place beyond the end of the file');
  const elements = shape.reduce((product, one) => product * one, 1);
  const bytes = offsets[1] - offsets[0];
  const bits = Object.hasOwn(BITS, dtype) ? BITS[dtype] : 0;
  if (bits && elements * bits !== bytes * 8) throw wrong('another size than its shape and dtype say');
  return { name, dtype, shape, elements, bytes, begin: offsets[0] };
}

const isCount = (value) => Number.isSafeInteger(value) && value >= 0;
const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);
