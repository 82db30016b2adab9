-- Search one page of the order list for elements that are not in the schedule, and set these aside if asked to: they are
-- never delivered, and the script cannot know whether they were. A difference that one script sees is real, because every
-- change of both keys is one script too.
--
-- KEYS[1] timeouts    zset  packed entry -> due time, epoch ms
-- KEYS[2] order       list  packed entries in offer order
-- KEYS[3] quarantine  list  entries set aside, as "<reason> <epoch ms> <bytes>"
--
-- ARGV[1] from      integer  where in the list the page starts
-- ARGV[2] page      integer  elements to examine
-- ARGV[3] setAside  flag     move elements that are not in the schedule to the quarantine
-- ARGV[4] mark      bytes    an element that no list holds, which overwrites elements before their removal
--
-- returns {elements examined, those of them that are in no schedule, and for each other one that can be read its id with
--   the length before it or, in the old format, alone}
local timeouts, order, quarantine = KEYS.timeouts, KEYS.order, KEYS.quarantine
local from, page, setAside, mark = tonumber(ARGV.from), tonumber(ARGV.page), ARGV.setAside == '1', ARGV.mark

-- include shared/entry-layout.lua

local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))

local elements = redis.call('LRANGE', order, from, from + page - 1)
local orphans, ids = 0, {}
for i, element in ipairs(elements) do
  if redis.call('ZSCORE', timeouts, element) then
    local start = layout(element)
    if start then ids[#ids + 1] = string.sub(element, 1, start == 17 and 8 or start == 26 and 17 or 9) end
  else
    orphans = orphans + 1
    if setAside then
      redis.call('RPUSH', quarantine, 'order-orphan ' .. now .. ' ' .. element)
      redis.call('LSET', order, from + i - 1, mark)
    end
  end
end
if setAside and orphans > 0 then
  -- from the nearer end: LREM walks up to the last one that it removes
  local fromLeft = from * 2 <= redis.call('LLEN', order)
  redis.call('LREM', order, fromLeft and orphans or -orphans, mark)
end
return {#elements, orphans, unpack(ids)}
