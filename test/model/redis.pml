/* What Redis does: the scripts, each in one step, and the channel. */

#define NO_LEADER 0
#define SELF 1
#define OTHER 2
byte leader = CLIENTS; /* redelayed:leader:{N}: a client, or none */
byte leaderUntil;      /* its PX */
#ifdef MOVER_TAKES_THE_LEASE /* another rule; it holds as well */
#define mayLead(i) true
#else
#define mayLead(i) (leader == CLIENTS || leader == i)
#endif

#ifdef MOST_SCRIPTS
byte scripts;
#endif
byte dueCount; /* pending entries whose time has come */

/* PUBLISH: each subscriber gets it, in one order for all */
inline publish(at) {
  for (j : 0 .. CLIENTS - 1) {
    if
    :: c[j].linked -> assert(len(box[j]) < BOX); box[j]!at
    :: else
    fi
  }
}

#define subscribersNow (c[0].linked + c[1].linked + c[2].linked)

/* z: the earliest pending due time, or INF */
inline head() {
  z = INF;
  for (k : 0 .. ENTRIES - 1) {
    if
    :: entry[k] == PENDING && due[k] < z -> z = due[k]
    :: else
    fi
  }
}

inline countAgain() {
  dueCount = 0;
  for (k : 0 .. ENTRIES - 1) {
    if
    :: entry[k] == PENDING && due[k] <= now -> dueCount++
    :: else
    fi
  }
}

inline forgetAtRedis() {
  countAgain();
  if
  :: leaderUntil <= now -> leader = CLIENTS; leaderUntil = 0
  :: else
  fi
}

/* @src store/scripts/offer.lua PUBLISH: the due time is announced when the entry became the head */
inline offer(delay) {
  head();
  y = z;
  for (k : 0 .. ENTRIES - 1) {
    if
    :: entry[k] == NEW -> entry[k] = PENDING; due[k] = now + delay; x = due[k]; break
    :: else
    fi
  };
  countAgain();
  if
  :: x < y -> publish(x)
  :: else
  fi
}

/* @src store/scripts/transfer.lua moved: what is due goes to the list; `one` stops after one entry, as when @src store/scripts/transfer.lua budget is used */
inline moveDue(i, one) {
  c[i].moved = 0;
  do
  :: true ->
    head();
#ifdef PLANT_EARLY
    if
    :: z > now + 1 -> break
#else
    if
    :: z > now -> break
#endif
    :: else ->
      for (k : 0 .. ENTRIES - 1) {
        if
        :: entry[k] == PENDING && due[k] == z -> break
        :: else
        fi
      };
      assert(due[k] <= now);        /* never early */
      assert(!listed[k]);           /* once */
      listed[k] = 1;
      entry[k] = LISTED; due[k] = 0; late[k] = 0; stuck[k] = 0;
      c[i].moved = 1;
      if
      :: one -> break
      :: else
      fi
    fi
  od;
  countAgain();
  head();
  c[i].next = z
}

#if ENTRIES == 2
#define allListed entry[0] == LISTED && entry[1] == LISTED
#else
#define allListed entry[0] == LISTED && entry[1] == LISTED && entry[2] == LISTED
#endif

/* @src store/scripts/transfer/lead.lua endsAt */
inline transfer(i, one) {
  c[i].requestLate = c[i].netAge > 0;
  c[i].ranAt = now;
#ifdef PLANT_PUBLISHES_THE_OLD_HEAD
  head(); oldHead = z;
#endif
  moveDue(i, one);
  x = c[i].next;
  if
  :: c[i].moved -> c[i].runs = 0
  :: else -> c[i].runs++; assert(c[i].runs <= MOST_RUNS) /* no livelock */
  fi;
#ifdef MOST_SCRIPTS
  scripts = least(scripts + 1, MOST_SCRIPTS + 1);
  assert(scripts <= MOST_SCRIPTS);
#endif
  y = 0; /* the length of the lease that this script wants */
  if
  :: x <= now -> y = LEASE
  :: x > now && c[i].moved && subscribersNow > 1 -> y = SOON
  :: else
  fi;
  flag = c[i].moved || c[i].announce;
  if
  :: y > 0 && mayLead(i) ->
    z = most(x, now);
    if
    :: leader == i && !c[i].renewing && x != INF && 2 * leaderUntil >= 2 * z + y -> flag = 0 /* long enough: the followers know it */
#ifdef PLANT_LEASE_WITHOUT_END
    :: else -> leader = i; leaderUntil = now + 20 /* SET without PX */
#else
    :: else -> leader = i; leaderUntil = now + y
#endif
    fi
  :: !(y > 0 && mayLead(i)) && !c[i].moved ->
    if
    :: leader != CLIENTS && leader != i -> flag = 0 /* the leader has published */
    :: leader == i && !c[i].renewing && x < leaderUntil -> flag = 0 /* this client has */
    :: leader == i && c[i].renewing -> flag = 1     /* the followers know an earlier time */
    :: else
    fi
  :: else
  fi;
  c[i].replyLeader = (leader == CLIENTS -> NO_LEADER : (leader == i -> SELF : OTHER));
  c[i].leaseUntil = (leader == CLIENTS -> 0 : leaderUntil);
  announced = (x == INF -> IDLE_UNTIL : most(x, leaderUntil));
#ifdef PLANT_PUBLISHES_THE_OLD_HEAD
  announced = (c[i].moved -> oldHead : announced);
#endif
  if
  :: flag -> publish(announced)
  :: else
  fi;
  c[i].replySubscribers = subscribersNow;
  c[i].netAge = 0;
  c[i].net = REPLIED;
  if
  :: !c[i].up -> clearNet(i) /* the client that sent it is gone */
  :: else
  fi
}

inline loseNet(i) {
  clearNetReply(i);
  c[i].net = LOST
}
