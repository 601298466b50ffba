# SPDX-License-Identifier: Apache-2.0
"""Drives a headless Chromium by its DevTools protocol over a pipe: no driver and no module of Python's is needed."""
import base64
import json
import os
import subprocess
import time

FLAGS = ['--headless=new', '--remote-debugging-pipe', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
         '--no-default-browser-check', '--disable-background-networking', '--disable-component-update', '--disable-sync',
         '--disable-default-apps', '--disable-extensions', '--disable-dev-shm-usage', '--hide-scrollbars']


class Browser:
    """One page. What it asked for is in .asked (URLs), what went wrong in it in .wrong."""

    def __init__(self, program, profile):
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        os.makedirs(profile)

        def set_fds():  # the browser reads commands from 3 and writes to 4
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)
            os.closerange(5, 64)
        self._log = open(profile + '.log', 'w')
        self._process = subprocess.Popen([program, *FLAGS, '--user-data-dir=' + profile, 'about:blank'], preexec_fn=set_fds, close_fds=False,
                                         stdin=subprocess.DEVNULL, stdout=self._log, stderr=subprocess.STDOUT)
        os.close(to_child)
        os.close(from_child)
        self._rest, self._id, self._session = b'', 0, None
        self.asked, self.wrong = [], []
        target = self.call('Target.createTarget', url='about:blank')['targetId']
        self._session = self.call('Target.attachToTarget', targetId=target, flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Network', 'Log'):
            self.call(domain + '.enable')

    def _message(self):
        while b'\0' not in self._rest:
            piece = os.read(self._in, 1 << 20)
            assert piece, 'the browser has ended'
            self._rest += piece
        line, self._rest = self._rest.split(b'\0', 1)
        return json.loads(line)

    def _note(self, m):
        p = m.get('params', {})
        if m['method'] == 'Network.requestWillBeSent':
            self.asked.append(p['request']['url'])
        elif m['method'] == 'Runtime.exceptionThrown':
            self.wrong.append(p['exceptionDetails'].get('exception', {}).get('description') or p['exceptionDetails']['text'])
        elif m['method'] == 'Log.entryAdded' and p['entry']['level'] == 'error':
            self.wrong.append(p['entry']['text'] + ' ' + p['entry'].get('url', ''))

    def call(self, method, **params):
        self._id += 1
        m = {'id': self._id, 'method': method, 'params': params}
        if self._session:
            m['sessionId'] = self._session
        os.write(self._out, json.dumps(m).encode() + b'\0')
        while True:
            answer = self._message()
            if answer.get('id') == self._id:
                assert 'error' not in answer, (method, answer['error'])
                return answer['result']
            if 'method' in answer:
                self._note(answer)

    def js(self, expression):
        r = self.call('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        assert 'exceptionDetails' not in r, (expression, r['exceptionDetails'])
        return r['result'].get('value')

    def wait_for(self, what, expression, seconds=60):
        until = time.monotonic() + seconds
        while not self.js(expression):
            assert time.monotonic() < until, 'waited in vain for: ' + what
            time.sleep(0.05)  # between two looks

    def size(self, width, height, phone=False):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=2 if phone else 1, mobile=phone)

    def dark(self, on):
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if on else 'light'}])

    def go(self, url):
        self.call('Page.navigate', url=url)

    def picture(self, path):
        """The whole page, also what one would have to scroll to."""
        r = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=True)
        with open(path, 'wb') as f:
            f.write(base64.b64decode(r['data']))

    def close(self):
        self._session = None
        try:
            self.call('Browser.close')
        except (AssertionError, OSError):
            pass
        self._process.wait(30)
        self._log.close()
