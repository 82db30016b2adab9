-- Messages with a group. They wait in `schedule`, as other messages wait in the schedules of their priorities, and in `order`: by group,
-- and within a group by time. `turns` has the groups with a message that may be claimed, in the order of their turns; `wakes` has the
-- groups whose message may be claimed from a time on; a group with as many claims as allowed is in neither. `states` has the claims of a
-- group and their times.
local GROUPED, GROUP_BYTE, LONGEST_GROUP, LONGEST_STATE, AT_DIGITS, TOGETHER_GROUPS = 10, string.byte('g'), 255, 1200, 16, 64

-- Opens the groups; their limits are read on first use, because most queues have none.
local function openGroups(keys, config, now)
  keys.config, keys.now = config, now
  return keys
end

local function readLimits(groups)
  if groups.isRead then return end
  local settings = stored(groups.config, 'groupConcurrency', 'groupRateLimit')
  groups.isRead, groups.concurrency = true, setting(settings.groupConcurrency, 1, MOST_CLAIMS)
  groups.rate = rateOf(settings.groupRateLimit)
end

-- The member of a message in `inFlight`, which begins with the digit of its priority, or with a letter.
local function memberOf(priority, id)
  return (priority == GROUPED and 'g' or priority) .. id
end

local function priorityOf(member)
  local first = string.sub(member, 1, 1)
  return first == 'g' and GROUPED or tonumber(first) or 0
end

-- The group of a message, and the number of bytes read for it: Redis has no command for the beginning of a field.
local function groupOf(messages, id)
  local record = redis.call('HGET', messages, id) or ''
  local _, _, _, _, group = readMeta(record)
  return group, #record
end

-- The prefix of a group's members, which begins with the length, so that no prefix is the beginning of another one.
local function prefixOf(group)
  return string.char(#group) .. group
end

-- The member of a message in `order`. Messages set aside for a paused task come after all times, at 2^53: see shared/aside.lua.
local function placeOf(group, at, id)
  return prefixOf(group) .. string.format('%016.0f', math.min(at, 9007199254740992)) .. id
end

-- Adds a message to those that wait in its group. Returns whether it is new there, and its member in `order`. A time that no script writes,
-- and that has no member in the order, is replaced by one that has: otherwise the message would only be in the schedule, and never be
-- found.
local function addToGroup(groups, group, at, id)
  at = math.max(0, math.min(at, 9007199254740991))
  local place = placeOf(group, at, id)
  local added = redis.call('ZADD', groups.order, 0, place)
  redis.call('ZADD', groups.schedule, string.format('%.0f', at), id)
  return added == 1, place
end

local function push(list, first, second)
  list[#list + 1] = first
  if second then list[#list + 1] = second end
end

-- Makes the functions for groups only if they are needed: most queues have no groups, and making functions takes longer than calling a few.
local function makeGroupFunctions()
  local MOST_TURN, MOST_TURN_TEXT = 4503599627370496, '4503599627370496'
  local MOST_ORDERED, ORDERED_TOGETHER, LONGEST_PLACE, MOST_STRANGERS, STATES_TOGETHER = 960, 64, 65536, 1000, 8

  -- The first messages that wait in a group, without those set aside: for each its time, its id and its member; a member that no script has
  -- written has neither time nor id. Also returns whether there can be more of the `most` that were wanted, because members are large.
  -- `areSmall`: those of other groups were small.
  local function headsOf(groups, group, most, areSmall)
    local prefix, heads = prefixOf(group), {}
    local low, high, page, isCut = '[' .. prefix, '(' .. placeOf(group, math.huge, ''), nil, false
    if most <= (areSmall and 16 or 2) then page = redis.call('ZRANGEBYLEX', groups.order, low, high, 'LIMIT', 0, most)
    else page, isCut = namesOf(most, function(many, from) return redis.call('ZRANGEBYLEX', groups.order, low, high, 'LIMIT', from, many) end) end
    for n, member in ipairs(page) do
      local at = string.match(string.sub(member, #prefix + 1, #prefix + AT_DIGITS), '^%d+$')
      local isWhole = at and #at == AT_DIGITS
      heads[n] = {at = isWhole and tonumber(at), id = isWhole and string.sub(member, #prefix + AT_DIGITS + 1), member = member}
    end
    return heads, isCut
  end

  -- Whether all members of `order` have the score 0: otherwise Redis does not find all messages of a group. Sets other scores, which
  -- another program wrote, to 0, as many as one script can examine.
  local function isOrdered(groups)
    if groups.isOrdered ~= nil then return groups.isOrdered end
    groups.isOrdered = true
    for _, range in ipairs({{'-inf', '(0'}, {'(0', '+inf'}}) do
      local left = redis.call('ZCOUNT', groups.order, range[1], range[2])
      for _ = 1, left > 0 and MOST_ORDERED or 0, ORDERED_TOGETHER do
        local page, isCut = namesOf(ORDERED_TOGETHER, function(many, rank) return redis.call('ZRANGEBYSCORE', groups.order, range[1], range[2], 'LIMIT', rank, many) end)
        for _, member in ipairs(page) do
          if #member > LONGEST_PLACE then redis.call('ZREM', groups.order, member) else redis.call('ZADD', groups.order, 0, member) end
        end
        left = left - #page
        if left <= 0 or #page == 0 or isCut then break end
      end
      groups.isOrdered = groups.isOrdered and left <= 0
    end
    return groups.isOrdered
  end

  -- When the first waiting message of a group is visible. Removes members of other programs. A script that has removed many, or read large
  -- ones, gives each other group that it asks for a turn, in which a poll examines it.
  local function headOf(groups, group)
    if not isOrdered(groups) then return groups.now end
    for _ = 1, 100 do
      if largeNames.bytes > largeNames.most or (groups.strangers or 0) > MOST_STRANGERS then break end
      local head = headsOf(groups, group, 1)[1]
      if not head then return nil end
      if #head.member > largeNames.above then largeNames.bytes = largeNames.bytes + #head.member end
      if head.at and tonumber(redis.call('ZSCORE', groups.schedule, head.id) or -1) == head.at then return head.at end
      redis.call('ZREM', groups.order, head.member)
      groups.strangers = (groups.strangers or 0) + 1
    end
    return groups.now
  end

  -- Whether a group is paused, so that it has no turn. Only scripts that hand out messages or resume a group check it: another script may
  -- give the group a turn, which ends when its message would be handed out.
  local function isPausedGroup(groups, group)
    if not groups.pauses then return false end
    if groups.arePaused == nil then groups.arePaused = redis.call('ZCARD', groups.pauses) > 0 end
    return groups.arePaused and redis.call('ZSCORE', groups.pauses, group) ~= false
  end

  -- The stored states of some groups; nothing if no script has written one. After the first one that is too long each is measured before it
  -- is read. A script that may give turns removes those that are too long, because each later one would read them.
  local function statesOf(groups, names)
    local texts, long = {}, {}
    for from = 1, groups.areLong and 0 or #names, STATES_TOGETHER do
      local page = redis.call('HMGET', groups.states, unpack(names, from, math.min(from + STATES_TOGETHER - 1, #names)))
      for n, text in ipairs(page) do
        local isLong = text and #text > LONGEST_STATE
        if isLong then long[#long + 1] = names[from + n - 1] end
        groups.areLong = groups.areLong or isLong
        texts[from + n - 1] = text and not isLong and text or ''
      end
      if groups.areLong then break end
    end
    for n = #texts + 1, #names do
      local size = redis.call('HSTRLEN', groups.states, names[n])
      if size > LONGEST_STATE then long[#long + 1] = names[n] end
      texts[n] = size > 0 and size <= LONGEST_STATE and redis.call('HGET', groups.states, names[n]) or ''
    end
    if groups.turns and #long > 0 then redis.call('HDEL', groups.states, unpack(long)) end
    return texts
  end

  local function readState(groups, text)
    readLimits(groups)
    local claims, window = string.match(text, '^(%d+) (.*)$')
    return {
      claims = setting(claims, 0) or 0, text = text,
      window = groups.rate and windowOf(groups.rate, window or '', groups.now) or {sum = 0},
    }
  end

  -- Collects a change of a state, to be written with the others.
  local function noteState(changes, group, before, text)
    if text == before then return end
    local list = text == '' and changes.gone or changes.set
    list[#list + 1] = group
    if text ~= '' then list[#list + 1] = text end
  end

  local function textOf(state)
    if state.claims == 0 and #state.window == 0 then return '' end
    return state.claims .. ' ' .. windowText(state.window)
  end

  -- The last turn; turns count up from 1. Another program wrote a turn beyond all of them: if the next turn followed it, all turns would be
  -- equal, and the groups whose names come first would get each of them.
  local function lastTurn(groups)
    local last = tonumber(redis.call('ZRANGE', groups.turns, -1, -1, 'WITHSCORES')[2]) or 0
    if last >= MOST_TURN then
      local whole = redis.call('ZCOUNT', groups.turns, '-inf', '(' .. MOST_TURN_TEXT)
      last = whole > 0 and tonumber(redis.call('ZRANGE', groups.turns, whole - 1, whole - 1, 'WITHSCORES')[2]) or 0
    end
    return math.max(0, last)
  end

  local function nextTurn(groups)
    groups.last = (groups.last or lastTurn(groups)) + 1
    return string.format('%.0f', groups.last)
  end

  -- Gives the next turns to some groups with a turn beyond all of them, which otherwise would wait until no other group has a turn.
  local function bringTurns(groups)
    if redis.call('ZCOUNT', groups.turns, MOST_TURN_TEXT, '+inf') == 0 then return end
    local beyond = namesOf(16, function(many, from) return redis.call('ZRANGEBYSCORE', groups.turns, MOST_TURN_TEXT, '+inf', 'LIMIT', from, many) end)
    for _, group in ipairs(beyond) do
      -- a long one is another program's, and would be read once more in its turn
      if #group > LONGEST_GROUP then redis.call('ZREM', groups.turns, group) else redis.call('ZADD', groups.turns, nextTurn(groups), group) end
    end
  end

  -- Whether a group is full. Another program, or a Redis that lost some keys, can have left a group more claims than all consumers have.
  local function isGroupFull(groups, state)
    if not groups.concurrency or state.claims < groups.concurrency then return false end
    if redis.call('ZCARD', groups.inFlight) > 0 then return claimsNow(groups.inFlight, groups.now) > 0 end
    state.claims = 0
    return false
  end

  -- Whether a group has a turn, and if not, when it can have one. `at`: when its first message is visible. A group without a message is
  -- examined once more when its claims are forgotten; a full group waits for the end of a claim.
  local function hasTurn(groups, state, at, isFull)
    local opens, last = groups.rate and opensAt(groups.rate, state.window), state.window[#state.window]
    local wakes = at and math.max(at, opens or 0) or last and last.at + groups.rate.per
    if at and not isFull and wakes <= groups.now then return true end
    return false, not (at and isFull) and wakes or nil
  end

  -- The moves of groups: `turns` and `wakes` have scores and names to add, `noTurns` and `noWakes` names to remove.
  local function newPlaces()
    return {set = {}, gone = {}, turns = {}, noTurns = {}, wakes = {}, forgets = {}, noWakes = {}}
  end

  local function writeStates(groups, places)
    if #places.set > 0 then redis.call('HSET', groups.states, unpack(places.set)) end
    if #places.gone > 0 then redis.call('HDEL', groups.states, unpack(places.gone)) end
    places.areWritten = true
  end

  -- Writes the moves; returns how many groups with a message have a time and had none.
  local function writePlaces(groups, places)
    writeStates(groups, places)
    if #places.turns > 0 then redis.call('ZADD', groups.turns, unpack(places.turns)) end
    if #places.noTurns > 0 then redis.call('ZREM', groups.turns, unpack(places.noTurns)) end
    if #places.noWakes > 0 then redis.call('ZREM', groups.wakes, unpack(places.noWakes)) end
    if #places.forgets > 0 then redis.call('ZADD', groups.wakes, unpack(places.forgets)) end
    return #places.wakes > 0 and redis.call('ZADD', groups.wakes, unpack(places.wakes)) or 0
  end

  -- Places a group by its state; `at` as for `hasTurn`.
  local function place(groups, places, group, state, at)
    local isFull = at and isGroupFull(groups, state)
    noteState(places, group, state.text, textOf(state))
    local has, wakes = hasTurn(groups, state, at, isFull)
    if has then
      push(places.noWakes, group)
      return true
    end
    push(places.noTurns, group)
    if wakes then push(at and places.wakes or places.forgets, string.format('%.0f', wakes), group) else push(places.noWakes, group) end
    return false
  end

  -- The claims of a group and the rest of its state, from the stored text and the number of begun or ended claims.
  local function claimsAfter(groups, text, change)
    local claims, window = string.match(text, '^(%d+) (.*)$')
    claims = math.max(0, (setting(claims, 0) or 0) + (change or 0))
    return groups.haveNone and 0 or claims, window or ''
  end

  local function noteClaims(places, group, before, claims, window)
    noteState(places, group, before, claims == 0 and window == '' and '' or claims .. ' ' .. window)
  end

  local function refreshPage(groups, names, changes, isLess, places)
    local calls = false
    local turns, texts = redis.call('ZMSCORE', groups.turns, unpack(names)), statesOf(groups, names)
    for n, group in ipairs(names) do
      local claims, window = claimsAfter(groups, texts[n], changes[group])
      if isPausedGroup(groups, group) then
        noteClaims(places, group, texts[n], claims, window)
        push(places.noTurns, group)
        push(places.noWakes, group)
      elseif turns[n] and not isLess then -- it stays: what it has, and whether it may, is looked at in its turn
        noteClaims(places, group, texts[n], claims, window)
      else
        local state = readState(groups, texts[n])
        state.claims = claims
        if place(groups, places, group, state, (headOf(groups, group))) and not turns[n] then
          push(places.turns, nextTurn(groups), group)
          calls = true
        end
      end
    end
    return writePlaces(groups, places) > 0 or calls
  end

  -- Only counts the begun and ended claims of groups: else an ended claim would hold a slot, which nothing frees.
  local function countClaims(groups, names, changes)
    local places = newPlaces()
    for n, text in ipairs(statesOf(groups, names)) do noteClaims(places, names[n], text, claimsAfter(groups, text, changes[names[n]])) end
    writeStates(groups, places)
  end

  -- As `refreshPage`, but a key of another type prevents no other step: a script that has added or moved a message would leave the rest
  -- undone. The groups then have no turn until polls find their messages. With `isStrict` such a key ends the script.
  local function tryPage(groups, names, changes, isLess)
    if groups.isStrict then return refreshPage(groups, names, changes, isLess, newPlaces()) end
    local places = newPlaces()
    local isDone, result = pcall(refreshPage, groups, names, changes, isLess, places)
    if isDone then return result end
    local text = type(result) == 'table' and result.err or result
    if not string.find(text, 'WRONGTYPE', 1, true) then return refreshPage(groups, names, places.areWritten and {} or changes, isLess, newPlaces()) end -- raises it with its code
    if not places.areWritten then pcall(countClaims, groups, names, changes) end
    return false
  end

  -- Updates the places of groups after their messages changed; `changes`: for each the number of begun or, below zero, ended claims;
  -- `isLess`: some messages no longer wait. Returns whether consumers have to poll again: a group has a turn, or a time for one, and had
  -- none.
  local function refreshGroups(groups, names, changes, isLess)
    local calls = false
    for from = 1, #names, TOGETHER_GROUPS do
      local page = {unpack(names, from, math.min(from + TOGETHER_GROUPS - 1, #names))}
      calls = tryPage(groups, page, changes, isLess) or calls
    end
    return calls
  end

  return {
    headsOf = headsOf, isPausedGroup = isPausedGroup, isGroupFull = isGroupFull, statesOf = statesOf, readState = readState, textOf = textOf,
    noteState = noteState, nextTurn = nextTurn, bringTurns = bringTurns, isOrdered = isOrdered, newPlaces = newPlaces, place = place, writePlaces = writePlaces, refreshGroups = refreshGroups,
  }
end

local made
local function groupFunctions()
  made = made or makeGroupFunctions()
  return made
end

-- `refreshGroups` without groups: see above.
local function refreshGroups(groups, names, changes, isLess)
  return #names > 0 and groupFunctions().refreshGroups(groups, names, changes, isLess)
end

local function refreshGroup(groups, group, claims)
  return refreshGroups(groups, {group}, {[group] = claims or 0}, true)
end
