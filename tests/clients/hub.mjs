// @huggingface/hub with its default configuration. usage: node hub.mjs TEST ENDPOINT FILE   (token and CA from the environment: HF_TOKEN, NODE_EXTRA_CA_CERTS)
import assert from 'node:assert/strict'
import { createHash, randomBytes, webcrypto } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as hub from '@huggingface/hub'

globalThis.crypto ??= webcrypto // Node 18 has it under another name; the library wants it here
const [, , test, hubUrl, file] = process.argv
const accessToken = process.env.HF_TOKEN
const common = { hubUrl, accessToken }
const data = readFileSync(file)
const hash = (bytes) => createHash('sha256').update(bytes).digest('hex')
const blob = (content) => new Blob([content])
const fails = async (promise, status) => {
  const failure = await promise.then(() => assert.fail(`expected ${status}`), (error) => error)
  assert.equal(failure.statusCode, status, failure.message)
}

async function bucket (name, more) {
  const repo = { type: 'bucket', name: `main/${name}` }
  await hub.createRepo({ repo, ...common, ...more })
  return repo
}

const upload = (repo, files) => hub.uploadFiles({ repo, ...common, files: Object.entries(files).map(([path, content]) => ({ path, content: blob(content) })) })

async function download (repo, path) {
  const found = await hub.downloadFile({ repo, path, ...common })
  return found && Buffer.from(await found.arrayBuffer())
}

async function listed (repo, more) {
  const found = []
  for await (const entry of hub.listFiles({ repo, ...common, ...more })) found.push(entry)
  return found
}

const tests = {
  async buckets () {
    const made = await hub.createRepo({ repo: { type: 'bucket', name: 'main/js' }, ...common })
    assert.equal(made.repoUrl, `${hubUrl}/buckets/main/js`)
    await fails(hub.createRepo({ repo: { type: 'bucket', name: 'main/js' }, ...common }), 409)
    assert.equal((await hub.whoAmI(common)).name, 'main')
    const open = await bucket('js-open', { visibility: 'public' })
    assert.equal(await hub.repoExists({ repo: open, hubUrl }), true)
    await hub.deleteRepo({ repo: { type: 'bucket', name: 'main/js' }, ...common })
    await fails(hub.deleteRepo({ repo: { type: 'bucket', name: 'main/js' }, ...common }), 404)
  },

  async files () {
    const repo = await bucket('js-files')
    const sizes = [1, 8191, 8192, 131072, 131073]
    const files = Object.fromEntries(sizes.map((size) => [`sizes/${size}`, data.subarray(0, size)]))
    // Names with # and ? go up and are listed, but this client cuts them off in the URLs of its downloads.
    const odd = Object.fromEntries(['whole/caf\u00e9', 'whole/cafe\u0301', 'whole/\u{1f389} dots.', 'whole/a+b&c=d;e', `whole/${'\u{1f680}'.repeat(254)}`].map((path) => [path, Buffer.from(path)]))
    await upload(repo, { 'odd/#': Buffer.from('hash'), 'odd/?': Buffer.from('question') })
    assert.deepEqual((await listed(repo, { path: 'odd' })).map((entry) => entry.path), ['odd/#', 'odd/?'])
    await hub.deleteFiles({ repo, paths: ['odd/#', 'odd/?'], ...common })
    await upload(repo, odd)
    for (const [path, content] of Object.entries(odd)) assert.equal(String(await download(repo, path)), String(content))
    await hub.deleteFiles({ repo, paths: Object.keys(odd), ...common })
    await upload(repo, { ...files, 'whole/ü ö.bin': data, 'sizes/empty': Buffer.alloc(0) })
    for (const [path, content] of Object.entries({ ...files, 'whole/ü ö.bin': data })) assert.equal(hash(await download(repo, path)), hash(content), path)
    assert.equal((await download(repo, 'sizes/empty')).length, 0)
    assert.equal(await download(repo, 'absent'), null)
    assert.deepEqual((await listed(repo, { recursive: true })).map((entry) => entry.path).sort(),
      [...Object.keys(files), 'sizes/empty', 'whole/ü ö.bin'].sort())
    assert.deepEqual((await listed(repo)).map((entry) => [entry.type, entry.path]), [['directory', 'sizes'], ['directory', 'whole']])
    assert.equal((await listed(repo, { path: 'sizes' })).length, sizes.length + 1)
    const infos = await hub.pathsInfo({ repo, paths: ['sizes/8192', 'absent'], ...common })
    assert.deepEqual(infos.map(({ path, size }) => [path, size]), [['sizes/8192', 8192]])
    assert.equal(infos[0].xetHash.length, 64)
    assert.equal(await hub.fileExists({ repo, path: 'sizes/1', ...common }), true)
    assert.equal(await hub.fileExists({ repo, path: 'sizes/2', ...common }), false)
    await hub.deleteFiles({ repo, paths: Object.keys(files), ...common })
    assert.equal((await listed(repo, { recursive: true })).length, 2)
    await hub.deleteFile({ repo, path: 'sizes/empty', ...common })
    await hub.uploadFile({ repo, file: { path: 'last', content: blob('last') }, ...common })
    assert.equal(String(await download(repo, 'last')), 'last')
  },

  async ranges () {
    const repo = await bucket('js-ranges')
    const size = 3 << 20
    const base = randomBytes(4 * size)
    await upload(repo, { base })
    const found = await hub.downloadFile({ repo, path: 'base', ...common })
    for (const [start, end] of [[0, 1], [size - 1, size + 100], [1_000_000, 9_000_000], [4 * size - 5, 4 * size]]) {
      assert.equal(hash(Buffer.from(await found.slice(start, end).arrayBuffer())), hash(base.subarray(start, end)))
    }
    // Far pieces of one xorb: the client asks for all of an entry's ranges in one request.
    const pieces = Buffer.concat([0, 2, 1].map((at) => base.subarray(at * size + 500_000, at * size + 2_500_000)))
    await upload(repo, { pieces })
    assert.equal(hash(await download(repo, 'pieces')), hash(pieces))
    const serial = await hub.downloadFile({ repo, path: 'pieces', parallelDownloads: false, ...common })
    assert.equal(hash(Buffer.from(await serial.arrayBuffer())), hash(pieces))
  },

  async edits () {
    const repo = await bucket('js-edits')
    await upload(repo, { file: data })
    const edit = async (start, end, content) => hub.commit({
      repo,
      ...common,
      title: 'edit',
      operations: [{
        operation: 'edit',
        path: 'file',
        originalContent: await hub.downloadFile({ repo, path: 'file', ...common }),
        edits: [{ start, end, content: blob(content) }]
      }]
    })
    await edit(1_000_000, 1_000_100, 'a hundred bytes less, some more')
    let wanted = Buffer.concat([data.subarray(0, 1_000_000), Buffer.from('a hundred bytes less, some more'), data.subarray(1_000_100)])
    assert.equal(hash(await download(repo, 'file')), hash(wanted))
    await edit(wanted.length, wanted.length, 'appended')
    wanted = Buffer.concat([wanted, Buffer.from('appended')])
    assert.equal(hash(await download(repo, 'file')), hash(wanted))
  },

  async commits () {
    const repo = await bucket('js-commits')
    const other = await bucket('js-other')
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [`many/${index}`, `content of ${index}`]))
    await upload(repo, many)
    assert.equal((await listed(repo, { recursive: true })).length, 150)
    await hub.commit({
      repo,
      ...common,
      title: 'several at once',
      operations: [{ operation: 'addOrUpdate', path: 'new', content: blob('new') }, { operation: 'delete', path: 'many/0' }]
    })
    assert.equal(await hub.fileExists({ repo, path: 'many/0', ...common }), false)
    await hub.copyFile({ source: { repo, path: 'new' }, destination: { repo: other, path: 'copied' }, ...common })
    await hub.copyFolder({ source: { repo, path: 'many' }, destination: { repo: other, path: 'folder' }, ...common })
    assert.equal(String(await download(other, 'copied')), 'new')
    assert.equal((await listed(other, { recursive: true })).length, 150)
  },

  async access () {
    const hidden = await bucket('js-hidden', { visibility: 'private' })
    const shown = await bucket('js-shown', { visibility: 'public' })
    await upload(shown, { file: 'shown' })
    assert.equal(await (await hub.downloadFile({ repo: shown, path: 'file', hubUrl })).text(), 'shown')
    await fails(hub.pathsInfo({ repo: hidden, paths: ['file'], hubUrl }), 401)
    await fails(hub.whoAmI({ hubUrl, accessToken: 'hf_wrong' }), 401)
  }
}

await tests[test]()
console.log('passed')
