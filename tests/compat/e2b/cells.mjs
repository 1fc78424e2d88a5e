// E2B's code interpreter for JavaScript, through the gateway. Run by engine_test.py.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'

import { Sandbox } from '@e2b/code-interpreter'

let box
before(async () => {
  box = await Sandbox.create({ timeoutMs: 120_000, envs: { GLOBAL: 'yes' } })
})
after(() => box.kill())

test('python', async () => {
  const run = await box.runCode("import os\nprint('out')\nos.environ['GLOBAL']")
  assert.deepEqual([run.text, run.logs.stdout.join('')], ['yes', 'out\n'])
  assert.equal((await box.runCode('1 / 0')).error.name, 'ZeroDivisionError')
})

test('javascript and bash', async () => {
  assert.equal((await box.runCode('const x = await Promise.resolve(42); x', { language: 'js' })).text, '42')
  assert.equal((await box.runCode('echo hi', { language: 'bash' })).logs.stdout.join(''), 'hi\n')
})

test('contexts', async () => {
  const context = await box.createCodeContext({ cwd: '/tmp' })
  await box.runCode('here = 1', { context })
  assert.equal((await box.runCode('here', { context })).text, '1')
  assert.equal((await box.runCode('here')).error.name, 'NameError')
  await box.removeCodeContext(context)
})

test('interrupted', async () => {
  await box.runCode('kept = 1')
  await assert.rejects(box.runCode('import time; time.sleep(60)', { timeoutMs: 1000 }))
  assert.equal((await box.runCode('kept')).text, '1')
})
