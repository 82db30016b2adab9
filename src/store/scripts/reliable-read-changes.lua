-- Read a page of the change stream without a group: the entries after one, and whether that one is still there, so that the page has
-- all changes since. The page ends with the entry that makes it longer than `bytes`.
--
-- KEYS[1] config   hash    the queue's settings
-- KEYS[2] changes  stream  the queue's changes
--
-- ARGV[1] after   text     the id of an entry, or '0-0' for all
-- ARGV[2] epoch   text     the epoch of that entry; "" when it need not exist
-- ARGV[3] count   integer  the most entries
-- ARGV[4] bytes   integer  the size of the page
-- ARGV[5] digest  text     the digest of that entry; "" for any entry of this id
--
-- returns {'ok' or 'off' when the queue keeps no changes; where the stream does not have that entry any more 'epoch', 'rewound' or
--   'trimmed'; the epoch of the queue or "", the id of the last entry that there ever was or "", the entries as XRANGE gives them}
local config, changes = KEYS.config, KEYS.changes
local after, epoch, count, bytes, digest = ARGV.after, ARGV.epoch, tonumber(ARGV.count), tonumber(ARGV.bytes), ARGV.digest

-- include shared/change-log.lua

-- include shared/stream-ids.lua

local STEP = 8 -- entries that one command reads: each can have 16 MiB

local function sizeOf(entry)
  local size = 0
  for _, field in ipairs(entry[2]) do size = size + #field end
  return size
end

local EDGE = 2048 -- bytes at each end of an entry: it can have 16 MiB

-- The digest of an entry's length and both ends; the caller computes the same.
local function digestOf(value)
  return redis.sha1hex(#value .. ' ' .. string.sub(value, 1, EDGE) .. string.sub(value, -EDGE))
end

-- Whether the entry exists; if two servers took writes at the same time, both can have one of this id.
local function hasEntry()
  local entry = redis.call('XRANGE', changes, after, after)[1]
  return entry and (not digest or digest == '' or digestOf(entry[2][2]) == digest)
end

local function read()
  local entries, size, from = {}, 0, after
  while #entries < count and size < bytes do
    local left = count - #entries
    local some = redis.call('XRANGE', changes, '(' .. from, '+', 'COUNT', left < STEP and left or STEP)
    for _, entry in ipairs(some) do
      if size >= bytes then break end
      entries[#entries + 1], size, from = entry, size + sizeOf(entry), entry[1]
    end
    if #some < STEP then break end
  end
  return entries
end

local log = logOf(config)
if not log then return {'off', '', '', {}} end
local isThere = redis.call('EXISTS', changes) == 1
local last = isThere and byName(redis.call('XINFO', 'STREAM', changes))['last-generated-id'] or '0-0'
local shown = last == '0-0' and '' or last
if epoch ~= '' then
  if epoch ~= log.epoch then return {'epoch', log.epoch, shown, {}} end
  if isBefore(last, after) then return {'rewound', log.epoch, shown, {}} end
  if after ~= '0-0' and not hasEntry() then return {'trimmed', log.epoch, shown, {}} end
end
return {'ok', log.epoch, shown, isThere and read() or {}}
