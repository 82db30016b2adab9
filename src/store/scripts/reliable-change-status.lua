-- How far the change stream and its groups are.
--
-- KEYS[1] config   hash    what `setConfig` and pausing say
-- KEYS[2] changes  stream  what the scripts have changed
--
-- returns {epoch or "" when the queue keeps no changes, the ids of the first and the last entry or "", how many there are, how many can be
--   there until adding is refused or 0, then for each of at most 100 groups five: its name, how many entries it has read and not
--   acknowledged, how many it has not read or -1 when the server does not say it, the first it has not acknowledged or "", its consumers}
local config, changes = KEYS[1], KEYS[2]

-- include shared/change-log.lua

-- include shared/stream-ids.lua

local log = logOf(config)
local first = redis.call('XRANGE', changes, '-', '+', 'COUNT', 1)[1]
local reply = {
  log and log.epoch or '', first and first[1] or '', '', redis.call('XLEN', changes), log and log.keep == 'g' and log.most or 0
}
if redis.call('EXISTS', changes) == 1 then reply[3] = byName(redis.call('XINFO', 'STREAM', changes))['last-generated-id'] end
for n, group in ipairs(groupsOf(changes)) do
  if n > 100 then break end
  local at = #reply
  reply[at + 1], reply[at + 2], reply[at + 3] = group.name, group.pending, group.lag or -1
  reply[at + 4], reply[at + 5] = group.first or '', group.consumers
end
return reply
