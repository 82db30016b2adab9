import { replace, type Fault } from '../../simulation/plant.js'
import { PLANTS } from '../journal/plants.js'

/** The faults to plant in the service; the bench's fault with the name `shownBy` must show each. */
export const HTTP_PLANTS: readonly { readonly plant: Fault; readonly shownBy: string; readonly foundAs: string }[] = [
  {
    plant: plantOf('what SQL knows as open is not put back'),
    shownBy: 'Redis is killed and comes back without data',
    foundAs: 'lost',
  },
  {
    plant: plantOf('what SQL knows as final stays in Redis'),
    shownBy: 'Redis is killed and comes back with an old snapshot',
    foundAs: 'cancelled',
  },
  {
    plant: {
      what: 'a webhook without an answer counts as delivered',
      changes: [
        replace(
          'Pump.#settle',
          'this.#fail(message, new Failure(reasonOf(delivered)), delivered.pauseMs)',
          'message.acknowledge()',
        ),
      ],
    },
    shownBy: 'the receiver of webhooks takes them and answers none',
    foundAs: 'lost',
  },
]

function plantOf(what: string): Fault {
  const found = PLANTS.find((plant) => plant.what === what)
  if (found === undefined) throw new Error(`there is no planted fault "${what}"`)
  return found
}
