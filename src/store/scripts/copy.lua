-- Copy the keys of one object to other names, together, with their expiry. Without COPY (before Redis 6.2) by way of DUMP.
--
-- KEYS[1] first      any  a key of the object
-- KEYS[2] second     any  the other key; the same again if the object has one key
-- KEYS[3] newFirst   any  the name of the first one's copy
-- KEYS[4] newSecond  any  the name of the second one's copy
--
-- ARGV[1] replace  flag  also when one of the new names is taken
-- ARGV[2] channel  text  the channel that announces the head of the copied schedule; empty for a list
--
-- returns 1 when copied, 0 when there is nothing to copy, a new name is taken, or the names are the same
if redis.call('EXISTS', KEYS.first) + redis.call('EXISTS', KEYS.second) == 0 then return 0 end
if KEYS.first == KEYS.newFirst then return 0 end
if ARGV.replace == '0' and redis.call('EXISTS', KEYS.newFirst) + redis.call('EXISTS', KEYS.newSecond) > 0 then return 0 end

local function copy(key, newKey)
  if redis.call('EXISTS', key) == 0 then
    redis.call('UNLINK', newKey)
    return
  end
  local copied = redis.pcall('COPY', key, newKey, 'REPLACE')
  if type(copied) == 'number' then return end
  local remaining = redis.call('PTTL', key)
  redis.call('RESTORE', newKey, remaining < 0 and 0 or math.max(1, remaining), redis.call('DUMP', key), 'REPLACE')
end
copy(KEYS.first, KEYS.newFirst)
if KEYS.second ~= KEYS.first then copy(KEYS.second, KEYS.newSecond) end
if ARGV.channel ~= '' then
  local head = redis.call('ZRANGEBYSCORE', KEYS.newFirst, 0, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  if head[2] then redis.call('PUBLISH', ARGV.channel, string.format('%.0f', math.floor(tonumber(head[2])))) end
end
return 1
