/* The client: the states and the transition of src/scheduler/due-machine.ts, under the same names. */

#define isTimerDue(i) ((c[i].state == WAITING || c[i].state == DEFERRING || c[i].state == BACKING_OFF) && c[i].deadline <= now)
#define mayDefer(i) (!c[i].isLeader && c[i].subscribers > 1 && c[i].state == WAITING)
#define isBackingOff(i) (c[i].state == BACKING_OFF)

/* @src scheduler/due-machine.ts INITIAL; a stopped client is one that is not up */
inline clearClient(i) {
#ifdef PLANT_STOP_LEAVES_TIMER
  if
  :: c[i].state == WAITING
  :: else -> c[i].state = IDLE; c[i].deadline = INF
  fi;
#else
  c[i].state = IDLE; c[i].deadline = INF;
#endif
  c[i].again = 0; c[i].renew = 0; c[i].isLeader = 0
}

inline clearNetReply(i) {
  c[i].moved = 0; c[i].next = 0; c[i].ranAt = 0; c[i].replySubscribers = 0; c[i].netAge = 0; c[i].requestLate = 0;
  c[i].replyLeader = 0; c[i].leaseUntil = 0
}

/* @src timing/remote-clock.ts toLocal */
#ifdef PLANT_PROCESS_CLOCK
#define toLocal(i, at) (at >= IDLE_UNTIL -> INF : at + 9)
#else
#define toLocal(i, at) (at >= IDLE_UNTIL -> INF : at + 1 - c[i].skew)
#endif

/* @src scheduler/due-machine.ts runScript */
inline run_(i, asked) {
  c[i].announce = asked; c[i].renewing = c[i].renew;
  c[i].state = RUNNING; c[i].deadline = INF; c[i].again = 0; c[i].renew = 0;
  c[i].net = SENT; c[i].netAge = 0
}

/* @src scheduler/due-machine.ts arm: a deadline that has passed fires at once, or after other events of this tick */
inline arm(i, at) {
  c[i].deadline = at;
  c[i].state = (at == INF -> IDLE : WAITING)
}

/* @src scheduler/due-machine.ts afterDeadline; with three clients each follower publishes: @src scheduler/due-machine.ts MAX_ANNOUNCING_FOLLOWERS */
inline onDeadline(i, wait) {
  if
  :: c[i].state == BACKING_OFF -> run_(i, 0)
  :: c[i].state == DEFERRING -> run_(i, 1)
  :: c[i].state == WAITING && mayDefer(i) -> /* @src scheduler/due-machine.ts defer */
#ifndef PLANT_ONLY_THE_LEADER
    c[i].state = DEFERRING; c[i].deadline = now + FOLLOW + wait
#else
    arm(i, INF)
#endif
  :: c[i].state == WAITING && !mayDefer(i) -> run_(i, 1)
  fi
}

/* @src scheduler/due-machine.ts requestScript */
inline request(i) {
  if
  :: c[i].state == RUNNING ->
#ifndef PLANT_AGAIN_LOST
    c[i].again = 1
#else
    skip
#endif
  :: else -> run_(i, 0)
  fi
}

/* @src scheduler/due-scheduler.ts wake */
inline wake(i) {
  if
  :: c[i].state == BACKING_OFF
  :: else -> request(i)
  fi
}

/* @src scheduler/due-scheduler.ts onSubscribed */
inline onSubscribed(i) {
#ifndef PLANT_NO_TRANSFER_AFTER_SUBSCRIBE
  request(i)
#else
  skip
#endif
}

/* @src scheduler/due-machine.ts afterAnnouncement: an announcement replaces the deadline of a follower and lowers that of the leader */
inline onAnnounced(i, at) {
  z = toLocal(i, at);
#ifdef PLANT_LOWERS_FOR_A_FOLLOWER
  flag = 1;
#elif defined PLANT_REPLACES_FOR_THE_LEADER
  flag = 0;
#else
  flag = c[i].isLeader;
#endif
  if
  :: c[i].state == IDLE || c[i].state == WAITING ->
    c[i].renew = c[i].renew || c[i].isLeader && z != INF && z <= c[i].deadline;
    y = (flag -> least(c[i].deadline, z) : z); arm(i, y)
  :: c[i].state == DEFERRING && z > now -> arm(i, z)
  :: c[i].state == RUNNING -> c[i].deadline = (flag -> least(c[i].deadline, z) : z)
  :: else
  fi
}

/* @src scheduler/due-machine.ts afterReply */
inline onReply(i, wait) {
  observe(i);
  c[i].subscribers = c[i].replySubscribers;
  x = c[i].next;
  y = c[i].leaseUntil;
  if
  :: c[i].replyLeader == SELF || c[i].replyLeader == NO_LEADER && c[i].moved -> c[i].isLeader = 1
  :: c[i].replyLeader == OTHER ->
#ifndef PLANT_NEVER_YIELDS
    c[i].isLeader = 0;
#endif
    x = (x == INF -> INF : most(x, y))
  :: c[i].replyLeader == NO_LEADER && !c[i].moved
  fi;
  clearNet(i);
  z = toLocal(i, x);
  c[i].renew = c[i].isLeader && c[i].deadline != INF && c[i].deadline <= z;
#if defined PLANT_REPLIES_REPLACE
#elif defined PLANT_REPLIES_IGNORED
  z = c[i].deadline;
#else
  z = least(c[i].deadline, z);
#endif
  if
  :: c[i].again -> flag = z <= now; run_(i, flag)
  :: else -> arm(i, z)
  fi
}

/* @src scheduler/due-machine.ts backOff */
inline onFailed(i) {
  clearNet(i);
  c[i].again = 0; c[i].renew = 0; c[i].isLeader = 0;
#ifndef PLANT_NO_RETRY
  c[i].state = BACKING_OFF; c[i].deadline = now + BACKOFF_TIME
#else
  c[i].state = IDLE; c[i].deadline = INF
#endif
}
