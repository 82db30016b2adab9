-- Count the messages of some groups by their state.
--
-- KEYS[1] config      hash  the queue's settings
-- KEYS[2] groupOrder  zset  group, due time and id of the messages with a group, in the order of their bytes
-- KEYS[3] groups      hash  group -> its claims, and when they were
-- KEYS[4] groupPauses  zset  the paused groups
--
-- ARGV[1] nowMs     integer  the caller's clock, or -1 for the server's
-- ARGV[2..] names  bytes*
--
-- returns for each group five: visible, delayed, claims, claims that its rate counts, 1 if it is paused
local order, pauses = KEYS.groupOrder, KEYS.groupPauses

-- include shared/milliseconds.lua

-- include shared/settings.lua

-- include shared/names.lua

-- include shared/record.lua

-- include shared/limits.lua

-- include shared/rate-limit.lua

-- include shared/groups.lua

local now = milliseconds(ARGV.nowMs)
local groups, names = openGroups({order = order, states = KEYS.groups, pauses = pauses}, KEYS.config, now), {}
for at = 2, #ARGV do names[at - 1] = ARGV[at] end
local of = groupFunctions()
local texts, reply = of.statesOf(groups, names), {}
for n, group in ipairs(names) do
  local prefix, state = prefixOf(group), of.readState(groups, texts[n])
  local visible = redis.call('ZLEXCOUNT', order, '[' .. prefix, '(' .. placeOf(group, now + 1, ''))
  visible = visible + redis.call('ZLEXCOUNT', order, '[' .. placeOf(group, math.huge, ''), '(' .. prefix .. ':')
  push(reply, visible, redis.call('ZLEXCOUNT', order, '[' .. prefix, '(' .. prefix .. ':') - visible)
  push(reply, state.claims, state.window.sum)
  push(reply, of.isPausedGroup(groups, group) and 1 or 0)
end
return reply
