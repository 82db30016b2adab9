import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { api } from '../../api/api.js'
import type { Endpoint } from '../../api/types.js'
import { count, duration } from '../../lib/format.js'
import { announce } from '../../parts/announcements.js'
import { Button } from '../../parts/button.js'
import { Confirm } from '../../parts/dialog.js'

interface EndpointActionsProps {
  readonly of: Endpoint
  readonly onDone: () => void
}

/** Test, disable or enable, recover. */
export function EndpointActions({ of: { id, enabled }, onDone }: EndpointActionsProps): JSX.Element {
  const [isAsking, setAsking] = useState(false)
  return (
    <>
      <Button
        needs="admin"
        onClick={async () => {
          const { status, error, tookMs } = await api.test(id)
          const isGood = status !== null && status >= 200 && status < 300
          announce(
            `Test: ${status === null ? (error ?? 'no answer') : `status ${status}`} after ${duration(tookMs)}`,
            !isGood,
          )
        }}
      >
        Send a test
      </Button>
      <Button
        needs="admin"
        onClick={async () => {
          await api.enable(id, !enabled)
          announce(enabled ? 'The endpoint is disabled; its messages wait' : 'The endpoint is enabled')
          onDone()
        }}
      >
        {enabled ? 'Disable' : 'Enable'}
      </Button>
      <Button needs="admin" kind="main" onClick={() => setAsking(true)}>
        Recover…
      </Button>
      {isAsking && (
        <Confirm
          title="Recover this endpoint?"
          deed="Recover"
          onClose={() => setAsking(false)}
          onConfirm={async () => {
            const { redriven } = await api.recover(id)
            announce(`Recovered; ${count(redriven)} dead letters are due again`)
            onDone()
          }}
        >
          <p>
            This enables the endpoint, closes its breaker, and moves all dead letters of its topics back: each is sent
            again.
          </p>
        </Confirm>
      )}
    </>
  )
}
