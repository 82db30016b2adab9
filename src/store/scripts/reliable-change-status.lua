-- Read the state of the change stream and its groups.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes
--
-- returns {epoch or "" when the queue keeps no changes, the ids of the first and the last entry or "", how many there are, how many can be
--   there until adding is refused or 0, how many groups there are, then for each of at most 100 of at most 1,000 groups six: its name, how
--   many entries it has read and not acknowledged, how many it has not read or -1 when the server does not say it, the first it has not
--   acknowledged or "", its consumers, for how many ms none of these has asked for entries or -1 where there are none or too many to look
--   at}
local config, changes = KEYS.config, KEYS.changes

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- How long no consumer of a group has asked for entries.
local function idleOf(group)
  local least = -1
  for _, flat in ipairs(redis.call('XINFO', 'CONSUMERS', changes, group)) do
    local idle = byName(flat).idle
    if least < 0 or idle < least then least = idle end
  end
  return least
end

local log = logOf(config)
local first = redis.call('XRANGE', changes, '-', '+', 'COUNT', 1)[1]
local reply = {
  log and log.epoch or '', first and first[1] or '', '', redis.call('XLEN', changes), log and log.keep == 'g' and tonumber(log.most) or 0
}
if redis.call('EXISTS', changes) == 1 then reply[3] = byName(redis.call('XINFO', 'STREAM', changes))['last-generated-id'] end
local looks = 1000 -- the most consumers to examine
local groups
groups, reply[6] = groupsOf(changes)
for n, group in ipairs(groups) do
  if n > 100 then break end
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = group.name, group.pending, group.lag or -1
  reply[at + 4], reply[at + 5] = group.first or '', group.consumers
  reply[at + 6] = -1
  if group.consumers <= looks then
    looks = looks - group.consumers
    reply[at + 6] = idleOf(group.name)
  end
end
return reply
