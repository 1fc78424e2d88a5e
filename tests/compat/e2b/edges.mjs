// E2B's JavaScript SDK where programs are careless: odd names, wrong words, and sandboxes that are gone. Run by engine_test.py, on
// two generations.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import {
  AuthenticationError, CommandExitError, FileNotFoundError, InvalidArgumentError, NotFoundError, Sandbox, SandboxError, SandboxNotFoundError,
  Template, TimeoutError, Volume,
} from 'e2b'

const nobody = 4_000_000 // a pid that no process has

async function eventually(condition) {
  for (let i = 0; i < 1200; ++i) {
    const result = await condition()
    if (result) return result
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  assert.fail('it did not happen')
}

const refused = (promise, kind, text) =>
  assert.rejects(promise, (error) => error instanceof kind && error.message.includes(text))

describe('careless calls', () => {
  let box
  before(async () => {
    box = await Sandbox.create({ timeoutMs: 300_000 })
  })
  after(() => box.kill())

  test('commands', async () => {
    const run = (...words) => box.commands.run(...words)
    await refused(run('id', { user: 'nosuch' }), AuthenticationError, "invalid username: 'nosuch'")
    await refused(run('id', { cwd: '/nope' }), InvalidArgumentError, "cwd '/nope' does not exist")
    await refused(box.commands.connect(nobody), NotFoundError, `process with pid ${nobody} not found`)
    await refused(box.commands.sendStdin(nobody, 'x'), NotFoundError, 'not found')
    assert.equal(await box.commands.kill(nobody), false)
    assert.equal((await run("printf '\\xc3'; sleep 0.1; printf '\\xa9'", { timeoutMs: 0 })).stdout, 'é')
    assert.equal((await run('echo x', { requestTimeoutMs: 0 })).stdout, 'x\n')
    const cut = new AbortController()
    const aborted = assert.rejects(run('sleep 600', { signal: cut.signal }))
    cut.abort()
    await aborted
  })

  test('input and ends', async () => {
    const counted = await box.commands.run('od -An -tx1', { background: true, stdin: true })
    await counted.sendStdin(new Uint8Array([0, 255, 10]))
    await counted.closeStdin()
    assert.equal((await counted.wait()).stdout, ' 00 ff 0a\n')
    const deaf = await box.commands.run('sleep 600', { background: true })
    await refused(deaf.sendStdin('x'), SandboxError, 'stdin not enabled or closed')
    const ended = assert.rejects(deaf.wait(), CommandExitError)
    assert.equal(await deaf.kill(), true)
    await ended
    const listened = await box.commands.run('sleep 600', { background: true })
    const second = await box.commands.connect(listened.pid, { timeoutMs: 300 })
    await assert.rejects(second.wait(), TimeoutError) // the listener's time, not the command's
    assert.equal(await listened.kill(), true)
  })

  test('a terminal that somebody else takes over', async () => {
    let output = ''
    const terminal = await box.pty.create({ cols: 80, rows: 24, onData: () => {}, cwd: '/tmp', envs: { A: 'b' }, user: 'root' })
    await terminal.disconnect()
    const again = await box.pty.connect(terminal.pid, { onData: (data) => (output += new TextDecoder().decode(data)) })
    await box.pty.sendInput(terminal.pid, new TextEncoder().encode('echo $A-$((40+2))-$(pwd)-$(whoami); exit 3\n'))
    await assert.rejects(again.wait(), (error) => error instanceof CommandExitError && error.exitCode === 3)
    assert.match(output, /b-42-\/tmp-root/)
    assert.equal(await box.pty.kill(terminal.pid), false)
  })

  test('odd names', async () => {
    const names = ['sp ace', 'é😀', 'a\'b"c', 'new\nline', '%2F', 'a+b&c=d?e#f', 'back\\slash', '*', ';x', 'x'.repeat(255)]
    for (const name of names) {
      assert.equal((await box.files.write(`odd/${name}`, name)).name, name)
      assert.equal(await box.files.read(`odd/${name}`), name)
      assert.equal(await (await fetch(await box.downloadUrl(`odd/${name}`))).text(), name)
    }
    assert.deepEqual((await box.files.list('odd')).map((each) => each.name).sort(), names.sort())
    const form = new FormData()
    form.append('file', new Blob(['sent']), 'by/its own name')
    assert.equal((await fetch(await box.uploadUrl(), { method: 'POST', body: form })).status, 200)
    assert.equal(await box.files.read('by/its own name'), 'sent')
  })

  test('every form of a file', async () => {
    await box.files.write([{ path: 'm/1', data: '1' }, { path: 'm/2', data: new Blob(['2']) }, { path: 'm/3', data: new Uint8Array([51]).buffer }])
    assert.deepEqual((await box.files.list('m', { depth: 2 })).map((each) => each.path), [1, 2, 3].map((n) => `/home/user/m/${n}`))
    await box.files.write('stream', new Blob(['x'.repeat(300_000)]).stream())
    assert.equal((await box.files.read('stream', { format: 'blob' })).size, 300_000)
    await box.files.write('packed', 'y'.repeat(100_000), { gzip: true })
    assert.equal((await box.files.getInfo('packed')).size, 100_000)
    await box.files.write('empty', '')
    assert.equal(await box.files.read('empty'), '')
    assert.equal((await box.files.read('empty', { format: 'bytes' })).length, 0)
    assert.equal((await box.files.read('empty', { format: 'blob' })).size, 0)
    assert.deepEqual(await box.files.write([]), [])
  })

  test('what is no file', async () => {
    await refused(box.files.read('nope'), FileNotFoundError, 'does not exist')
    await refused(box.files.read('nope', { format: 'stream' }), FileNotFoundError, 'does not exist')
    await refused(box.files.read('/tmp'), InvalidArgumentError, 'is a directory')
    await refused(box.files.list('nope'), FileNotFoundError, 'not found')
    await refused(box.files.rename('nope', 'x'), FileNotFoundError, 'not found')
    await refused(box.files.watchDir('nope', () => {}), FileNotFoundError, 'not found')
    await refused(box.files.watchDir('/etc/passwd', () => {}), InvalidArgumentError, 'not a directory')
    await refused(box.files.write('f', 'x', { user: 'nosuch' }), AuthenticationError, 'nosuch')
    await box.files.remove('nope')
  })

  test('a watch that ends by itself, and one whose folder goes', async () => {
    let end
    await box.files.watchDir('/tmp', () => {}, { timeoutMs: 300, onExit: (error) => (end = error) })
    assert.ok((await eventually(() => end)) instanceof TimeoutError)
    await box.files.makeDir('going')
    const events = []
    const handle = await box.files.watchDir('going', (event) => events.push([event.name, event.type]))
    await box.files.remove('going')
    await eventually(() => events.length)
    assert.deepEqual(events, [['.', 'remove']])
    await handle.stop()
  })

  test('lists', async () => {
    const tagged = await Sandbox.create({ timeoutMs: 60_000, metadata: { 'a b': 'é=&%', empty: '' } })
    const ids = async (query) => (await Sandbox.list({ query }).nextItems()).map((each) => each.sandboxId)
    assert.deepEqual(await ids({ metadata: { 'a b': 'é=&%' } }), [tagged.sandboxId])
    assert.deepEqual(await ids({ metadata: { empty: '' } }), [tagged.sandboxId])
    assert.deepEqual(await ids({ metadata: { empty: 'x' } }), [])
    assert.ok((await ids({ state: [] })).includes(tagged.sandboxId))
    await refused(Sandbox.list({ nextToken: 'nonsense' }).nextItems(), SandboxError, '400')
    await refused(Sandbox.list({ limit: 1000 }).nextItems(), SandboxError, '400')
    await tagged.kill()
  })

  test('snapshots in a hurry', async () => {
    const items = (options) => Sandbox.listSnapshots({ sandboxId: box.sandboxId, ...options }).nextItems()
    const made = []
    for (let n = 0; n < 4; ++n) made.unshift(await box.createSnapshot())
    assert.deepEqual(await items(), made)
    const named = await Promise.all([1, 2, 3].map(() => box.createSnapshot({ name: 'hurry' })))
    assert.equal((await items({ name: 'hurry' })).length, 1)
    assert.deepEqual(named.map((each) => each.snapshotId), Array(3).fill('default/hurry:default'))
    for (const { snapshotId } of await items()) assert.equal(await Sandbox.deleteSnapshot(snapshotId), true)
    assert.deepEqual(await items(), [])
  })

  test('what nobody grants here', async () => {
    await refused(Volume.list(), Error, '501')
    await refused(Sandbox.create('base', { mcp: { server: {} } }), SandboxError, 'mcp-gateway')
    assert.deepEqual([await Template.exists('base'), await Template.exists('no-such-template')], [true, false])
  })

  test('connecting for no time', async () => {
    const { endAt } = await box.getInfo()
    await Sandbox.connect(box.sandboxId, { timeoutMs: 0 })
    assert.deepEqual((await box.getInfo()).endAt, endAt)
  })
})

describe('gone', () => {
  const inside = (box) => [
    () => box.commands.run('true'), () => box.commands.connect(1), () => box.files.read('f'), () => box.files.write('f', 'x'),
    () => box.files.list('f'), () => box.files.watchDir('f', () => {}), () => box.pty.create({ cols: 1, rows: 1, onData: () => {} }),
  ]
  const isGone = (error) => error instanceof SandboxNotFoundError || error instanceof TimeoutError

  test('killed', async () => {
    const box = await Sandbox.create({ timeoutMs: 60_000 })
    await box.kill()
    for (const call of inside(box)) await assert.rejects(call, isGone)
    for (const call of [() => box.getInfo(), () => box.setTimeout(1000), () => box.pause(), () => box.connect(),
      () => box.createSnapshot(), () => box.fork(), () => box.updateNetwork({})])
      await assert.rejects(call, SandboxNotFoundError)
    assert.deepEqual([await box.isRunning(), await box.kill(), await box.getMetrics()], [false, false, []])
  })

  test('paused', async () => {
    const box = await Sandbox.create({ timeoutMs: 60_000 })
    const listener = await box.commands.run('sleep 600', { background: true })
    const cut = assert.rejects(listener.wait(), TimeoutError)
    assert.deepEqual([await box.pause(), await box.pause()], [true, false])
    await cut
    for (const call of inside(box)) await assert.rejects(call, isGone)
    await assert.rejects(box.setTimeout(1000), SandboxNotFoundError)
    await box.kill()
  })

  test('paused without memory, though requests would wake it', async () => {
    const box = await Sandbox.create({ timeoutMs: 60_000, lifecycle: { onTimeout: 'pause', autoResume: true } })
    await box.files.write('kept', 'kept')
    await box.pause()
    assert.equal(await box.isRunning(), true)
    await box.pause({ keepMemory: false })
    assert.equal(await box.isRunning(), false)
    for (const call of inside(box)) await assert.rejects(call, isGone)
    assert.equal((await box.getInfo()).state, 'paused')
    await box.connect()
    assert.equal(await box.files.read('kept'), 'kept')
    await box.kill()
  })

  test('killed while a file is read and a folder is watched', async () => {
    const box = await Sandbox.create({ timeoutMs: 60_000 })
    await box.commands.run('truncate -s 20G large')
    let end
    await box.files.watchDir('/tmp', () => {}, { onExit: (error) => (end = error) })
    const reader = (await box.files.read('large', { format: 'stream' })).getReader()
    await reader.read()
    await box.kill()
    await assert.rejects(async () => {
      while (!(await reader.read()).done);
    })
    assert.ok((await eventually(() => end)) instanceof TimeoutError)
  })
})
