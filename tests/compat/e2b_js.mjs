// What a user of the JavaScript SDKs does, and what comes back. Run by e2b_test.py.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'

import { CommandExitError, FileType, NotFoundError, Sandbox, TimeoutError } from 'e2b'
import { Sandbox as Interpreter } from '@e2b/code-interpreter'

let box
before(async () => {
  box = await Sandbox.create()
})
after(() => box.kill())

const decoder = new TextDecoder()

async function eventually(condition) {
  for (let i = 0; i < 3000; ++i) {
    const result = await condition()
    if (result) return result
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  assert.fail('it did not happen')
}

describe('commands', () => {
  test('output and end', async () => {
    const done = await box.commands.run('echo out; echo err >&2')
    assert.deepEqual([done.stdout, done.stderr, done.exitCode], ['out\n', 'err\n', 0])
  })

  test('a failure is thrown', async () => {
    await assert.rejects(box.commands.run('exit 3'), (error) => error instanceof CommandExitError && error.exitCode === 3)
  })

  test('user, directory, environment', async () => {
    const done = await box.commands.run('whoami; pwd; echo $A', { user: 'root', cwd: '/tmp', envs: { A: 'x' } })
    assert.equal(done.stdout, 'root\n/tmp\nx\n')
  })

  test('a deadline ends the command', async () => {
    await assert.rejects(box.commands.run('sleep 60', { timeoutMs: 500 }), TimeoutError)
  })

  test('background, input, list, kill', async () => {
    let output = ''
    const handle = await box.commands.run('cat', { background: true, stdin: true, onStdout: (text) => (output += text) })
    assert.ok((await box.commands.list()).some((each) => each.pid === handle.pid))
    await box.commands.sendStdin(handle.pid, 'hello\n')
    await eventually(() => output === 'hello\n')
    assert.equal(await handle.kill(), true)
    assert.equal(await box.commands.kill(handle.pid), false)
  })

  test('reattach', async () => {
    const handle = await box.commands.run('until test -e /tmp/js-go; do sleep 0.02; done; echo late', { background: true })
    await handle.disconnect()
    const again = await box.commands.connect(handle.pid)
    await box.files.write('/tmp/js-go', '')
    assert.equal((await again.wait()).stdout, 'late\n')
  })

  test('a terminal', async () => {
    let output = ''
    const terminal = await box.pty.create({ rows: 24, cols: 80, onData: (data) => (output += decoder.decode(data)) })
    await box.pty.resize(terminal.pid, { rows: 33, cols: 99 })
    await box.pty.sendInput(terminal.pid, new TextEncoder().encode('stty size; exit\n'))
    await terminal.wait()
    assert.match(output, /33 99/)
  })
})

describe('files', () => {
  test('write, read, list, rename, remove', async () => {
    const folder = '/home/user/js'
    assert.equal(await box.files.makeDir(folder), true)
    assert.equal(await box.files.makeDir(folder), false)
    const written = await box.files.write(`${folder}/a/b.txt`, 'héllo')
    assert.equal(written.path, `${folder}/a/b.txt`)
    assert.equal(await box.files.read(`${folder}/a/b.txt`), 'héllo')
    const blob = new Uint8Array(1_000_000).map((_, i) => i)
    await box.files.write(`${folder}/blob`, blob.buffer)
    assert.deepEqual(await box.files.read(`${folder}/blob`, { format: 'bytes' }), blob)
    await box.files.write(`${folder}/empty`, '')
    assert.equal(await box.files.read(`${folder}/empty`), '')
    assert.deepEqual((await box.files.list(folder)).map((each) => each.name), ['a', 'blob', 'empty'])
    const info = await box.files.getInfo(`${folder}/blob`)
    assert.deepEqual([info.type, info.size, info.owner], [FileType.FILE, 1_000_000, 'user'])
    await box.files.rename(`${folder}/blob`, `${folder}/renamed`)
    assert.equal(await box.files.exists(`${folder}/blob`), false)
    await box.files.remove(folder)
    await assert.rejects(box.files.read(`${folder}/renamed`), NotFoundError)
  })

  test('compressed, as a stream, with metadata', async () => {
    const path = '/home/user/js-gzip'
    await box.files.write(path, 'x'.repeat(100_000), { gzip: true, useOctetStream: true, metadata: { colour: 'blue' } })
    assert.equal(await box.files.read(path, { gzip: true }), 'x'.repeat(100_000))
    assert.deepEqual((await box.files.getInfo(path)).metadata, { colour: 'blue' })
    let size = 0
    for await (const piece of await box.files.read(path, { format: 'stream' })) size += piece.length
    assert.equal(size, 100_000)
    await box.files.remove(path)
  })

  test('watching', async () => {
    const folder = '/home/user/js-watch'
    await box.files.makeDir(folder)
    const events = []
    const handle = await box.files.watchDir(folder, (event) => events.push([event.name, event.type]), { recursive: true })
    await box.files.write(`${folder}/w`, 'x')
    await eventually(() => events.length >= 3)
    assert.deepEqual(events, [['w', 'create'], ['w', 'chmod'], ['w', 'write']])
    await box.files.makeDir(`${folder}/sub`)
    await eventually(() => events.length >= 4)
    await box.files.write(`${folder}/sub/deep`, 'x')
    await eventually(() => events.some(([name]) => name === 'sub/deep'))
    await handle.stop()
    await box.files.remove(folder)
  })
})

describe('cells', () => {
  let interpreter
  before(async () => {
    interpreter = await Interpreter.create()
  })
  after(() => interpreter.kill())

  test('python', async () => {
    const run = await interpreter.runCode("print('out')\n6 * 7")
    assert.equal(run.text, '42')
    assert.deepEqual(run.logs.stdout.join(''), 'out\n')
    const failed = await interpreter.runCode('1 / 0')
    assert.equal(failed.error.name, 'ZeroDivisionError')
  })

  test('javascript', async (t) => {
    const run = await interpreter.runCode('const x = await Promise.resolve(20); console.log("out"); x * 2 + 2', { language: 'js' })
    assert.equal(run.text, '42')
    assert.equal(run.logs.stdout.join(''), 'out\n')
    assert.equal((await interpreter.runCode('x', { language: 'javascript' })).text, '20')
  })

  test('contexts', async () => {
    const context = await interpreter.createCodeContext({ language: 'python', cwd: '/tmp' })
    await interpreter.runCode('here = 1', { context })
    assert.equal((await interpreter.runCode('here', { context })).text, '1')
    assert.equal((await interpreter.runCode('here')).error.name, 'NameError')
    await interpreter.removeCodeContext(context)
  })
})
