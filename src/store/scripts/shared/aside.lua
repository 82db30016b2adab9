-- Messages of a paused task. When a poll meets one, it moves the message to the end of its schedule, to the score 2^53 plus twice the sum
-- of the time at which it was visible and 2^43 times the number of its task. So every script that searches a message finds it, the messages
-- of a task are together and in order, and no poll meets them again. A time from outside is always less. Paused tasks have numbers from 1
-- to `most`; the number of a resumed task, whose messages come back, is higher by `resumed`. One table, because the longest script has no
-- room for more names.
local aside = {from = 9007199254740992, text = '9007199254740992', to = '(18014398509481984', span = 8796093022208, most = 511, resumed = 1000}

-- Whether a score is that of a message set aside; another program wrote any larger score, such as an infinite one.
aside.has = function(score)
  return score >= aside.from and score < 2 * aside.from
end

aside.whenOf = function(score)
  if not aside.has(score) then return score end
  return (score - aside.from) / 2 % aside.span
end

-- The first and the last possible score of a task's messages.
aside.range = function(number)
  local first = aside.from + 2 * number * aside.span
  return string.format('%.0f', first), string.format('%.0f', first + 2 * (aside.span - 1))
end
