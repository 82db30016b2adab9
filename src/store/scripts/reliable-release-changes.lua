-- Acknowledge all entries up to one for a group that did not read them as a group; create the group if there is none. If the stream is
-- kept for groups, remove entries that all groups have acknowledged.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes
--
-- ARGV[1] group  text
-- ARGV[2] id     text  the id of an existing entry, or '0-0' for none
--
-- returns 1; or 0, without a change, when the queue keeps no changes, when the group is further, and when there is no such entry:
--   Redis went back in time, and has other entries than the caller
local config, changes = KEYS.config, KEYS.changes
local group, id = ARGV.group, ARGV.id

-- include shared/change-log.lua

-- include shared/stream-ids.lua

-- include shared/trim-changes.lua

local log = logOf(config)
if not log then return 0 end
if redis.call('EXISTS', changes) == 0 then
  if id ~= '0-0' then return 0 end
  -- a lost stream takes changes with it, and the stream that a new group creates must not hide that
  log.epoch = epochAfter(log.epoch)
  redis.call('HSET', config, 'changes', changesWith(log, log.epoch))
end
if id ~= '0-0' and #redis.call('XRANGE', changes, id, id) == 0 then return 0 end

local made = redis.pcall('XGROUP', 'CREATE', changes, group, id, 'MKSTREAM')
if type(made) == 'table' and made.err then
  if string.sub(made.err, 1, 9) ~= 'BUSYGROUP' then return redis.error_reply(made.err) end
  for _, one in ipairs((groupsOf(changes))) do
    if one.name == group and not isBefore(one.last, id) then return 0 end
  end
  redis.call('XGROUP', 'SETID', changes, group, id)
end
if log.keep == 'g' then trimChanges(changes) end

-- The server knows a group's lag only if it knows how many entries the group has read (from Redis 7 on). If another program has set that
-- count too high, the lag stays unknown.
local stream = byName(redis.call('XINFO', 'STREAM', changes))
local first = redis.call('XRANGE', changes, '-', '+', 'COUNT', 1)[1]
if stream['entries-added'] and first and first[1] == id then
  redis.pcall('XGROUP', 'SETID', changes, group, id, 'ENTRIESREAD', stream['entries-added'] - stream.length + 1)
end
-- a read without entries, which shows other clients that the group has a reader
redis.call('XREADGROUP', 'GROUP', group, 'released', 'COUNT', 1, 'STREAMS', changes, '0')
return 1
