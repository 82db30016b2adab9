import type { JSX } from 'preact'
import { session } from '../api/session.js'
import { href, useSegments } from '../lib/router.js'
import { Head } from '../parts/head.js'
import { Agenda } from '../screens/agenda/agenda.js'
import { Audit } from '../screens/audit/audit.js'
import { DeadLetters } from '../screens/dead-letters/dead-letters.js'
import { Doctor } from '../screens/doctor/doctor.js'
import { EndpointScreen } from '../screens/endpoints/endpoint.js'
import { Endpoints } from '../screens/endpoints/endpoints.js'
import { Instances } from '../screens/instances/instances.js'
import { Journal } from '../screens/journal/journal.js'
import { MessageScreen } from '../screens/messages/message.js'
import { Messages } from '../screens/messages/messages.js'
import { Overview } from '../screens/overview/overview.js'
import { QueueScreen } from '../screens/queues/queue.js'
import { Queues } from '../screens/queues/queues.js'
import { TopicScreen } from '../screens/topics/topic.js'
import { Topics } from '../screens/topics/topics.js'

/** The screen for the address. */
export function Screen(): JSX.Element {
  const [first = '', second, third, fourth, ...more] = useSegments()
  if (more.length > 0) return <NotThere />
  if (first === 'topics' && second !== undefined) {
    if (third === 'messages' && fourth !== undefined)
      return <MessageScreen key={`${second}/${fourth}`} topic={second} id={fourth} />
    return third === undefined ? <TopicScreen key={second} name={second} /> : <NotThere />
  }
  if (third !== undefined) return <NotThere />
  if (first === 'endpoints' && second !== undefined) return <EndpointScreen key={second} id={second} />
  if (first === 'queues' && second !== undefined) return <QueueScreen key={second} name={second} />
  if (second !== undefined) return <NotThere />
  switch (first) {
    case '':
      return session.get()?.readOnly === true ? <Queues /> : <Overview />
    case 'topics':
      return <Topics />
    case 'agenda':
      return <Agenda />
    case 'messages':
      return <Messages />
    case 'dead-letters':
      return <DeadLetters />
    case 'endpoints':
      return <Endpoints />
    case 'journal':
      return <Journal />
    case 'instances':
      return <Instances />
    case 'doctor':
      return <Doctor />
    case 'audit':
      return <Audit />
    case 'queues':
      return <Queues />
    default:
      return <NotThere />
  }
}

function NotThere(): JSX.Element {
  return (
    <>
      <Head title="There is no such screen" />
      <p>
        Begin with the <a href={href('/')}>overview</a>.
      </p>
    </>
  )
}
