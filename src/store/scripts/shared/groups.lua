-- Messages with a group. They wait in `schedule` as others wait in the schedules of their priorities, and in `order`: by group, and within one by time. `turns` has the
-- groups of which a message may be claimed, in the order of their turns; `wakes` those for which that is so only from a time on; one that has
-- as many claims as it may is in neither. `states` has the claims of a group and when they were.
local GROUPED, GROUP_BYTE, LONGEST_GROUP, LONGEST_STATE, AT_DIGITS = 10, string.byte('g'), 255, 1200, 16

-- The limits are read where a group is looked at: most queues have none.
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

-- What the claims have as members begins with the digit of the priority, or with a letter.
local function memberOf(priority, id)
  return (priority == GROUPED and 'g' or priority) .. id
end

local function priorityOf(member)
  local first = string.sub(member, 1, 1)
  return first == 'g' and GROUPED or tonumber(first) or 0
end

local function groupOf(messages, id)
  local _, _, _, _, group = readMeta(redis.call('HGET', messages, id) or '')
  return group
end

-- Begins with the length, so that none is the beginning of another one.
local function prefixOf(group)
  return string.char(#group) .. group
end

local function placeOf(group, at, id)
  return prefixOf(group) .. string.format('%016.0f', at) .. id
end

local function headOf(groups, group)
  local prefix = prefixOf(group)
  for _ = 1, 100 do
    local head = redis.call('ZRANGEBYLEX', groups.order, '[' .. prefix, '(' .. prefix .. ':', 'LIMIT', 0, 1)[1]
    if not head then return nil end
    local at, id = string.sub(head, #prefix + 1, #prefix + AT_DIGITS), string.sub(head, #prefix + AT_DIGITS + 1)
    if string.match(at, '^%d+$') and #at == AT_DIGITS and redis.call('ZSCORE', groups.schedule, id) then return tonumber(at), id, head end
    redis.call('ZREM', groups.order, head) -- another program wrote it
  end
end

-- A paused group has no turn. Only a script that hands out messages, or resumes a group, looks: another one may give the group a turn, which ends
-- where its message would be handed out.
local function isPausedGroup(groups, group)
  if not groups.pauses then return false end
  if groups.arePaused == nil then groups.arePaused = redis.call('ZCARD', groups.pauses) > 0 end
  return groups.arePaused and redis.call('ZSCORE', groups.pauses, group) ~= false
end

local function readState(groups, group)
  readLimits(groups)
  local size = redis.call('HSTRLEN', groups.states, group)
  local text = size > 0 and size <= LONGEST_STATE and redis.call('HGET', groups.states, group) or ''
  local claims, window = string.match(text, '^(%d+) (.*)$')
  return {
    claims = setting(claims, 0) or 0, text = text,
    window = groups.rate and windowOf(groups.rate, window or '', groups.now) or {sum = 0},
  }
end

local function writeState(groups, group, state)
  if state.claims == 0 and #state.window == 0 then
    if state.text ~= '' then redis.call('HDEL', groups.states, group) end
  else
    redis.call('HSET', groups.states, group, state.claims .. ' ' .. windowText(state.window))
  end
end

local function lastTurn(groups, group)
  local last = redis.call('ZRANGE', groups.turns, -1, -1, 'WITHSCORES')
  redis.call('ZADD', groups.turns, string.format('%.0f', (tonumber(last[2]) or 0) + 1), group)
end

-- Another program, or a Redis that came back without some keys, can have left a group more claims than all consumers have.
local function isGroupFull(groups, state)
  return groups.concurrency and state.claims >= groups.concurrency and claimsNow(groups.inFlight, groups.now) > 0
end

-- Puts a group where its messages and its limits want it, at the end of the turns if it `hadTurn`. Returns whether consumers have to look again:
-- it has a turn, or a time from which on it can have one, and had none.
local function placeGroup(groups, group, state, hadTurn)
  if isPausedGroup(groups, group) then
    redis.call('ZREM', groups.turns, group)
    redis.call('ZREM', groups.wakes, group)
    return false
  end
  local at, opens = headOf(groups, group), groups.rate and opensAt(groups.rate, state.window)
  local isFull = isGroupFull(groups, state)
  local last = state.window[#state.window]
  local wakes = at and math.max(at, opens or 0) or last and last.at + groups.rate.per -- without a message it is looked at once more, when its claims are forgotten
  if at and not isFull and wakes <= groups.now then
    redis.call('ZREM', groups.wakes, group)
    if hadTurn then lastTurn(groups, group)
    elseif not redis.call('ZSCORE', groups.turns, group) then
      lastTurn(groups, group)
      return true
    end
    return false
  end
  redis.call('ZREM', groups.turns, group)
  if wakes and not (at and isFull) then
    return redis.call('ZADD', groups.wakes, string.format('%.0f', wakes), group) == 1 and at ~= nil
  end
  redis.call('ZREM', groups.wakes, group)
  return false
end

-- `addToGroup` puts a message among those that wait in its group, `takeFromGroup` takes it out.
local function addToGroup(groups, group, at, id)
  redis.call('ZADD', groups.order, 0, placeOf(group, at, id))
  redis.call('ZADD', groups.schedule, string.format('%.0f', at), id)
end

local function takeFromGroup(groups, group, id)
  local at = redis.call('ZSCORE', groups.schedule, id)
  if not at then return end
  redis.call('ZREM', groups.order, placeOf(group, tonumber(at), id))
  redis.call('ZREM', groups.schedule, id)
end

-- After a change of what waits; `claims` is how many claims have begun or, below zero, ended. Returns the same as `placeGroup`.
local function refreshGroup(groups, group, claims, hadTurn)
  local state = readState(groups, group)
  if groups.rate and claims and claims > 0 then addClaims(groups.rate, state.window, claims, groups.now + 1) end -- up, so that no stretch is shorter
  state.claims = math.max(0, state.claims + (claims or 0))
  writeState(groups, group, state)
  return placeGroup(groups, group, state, hadTurn)
end
