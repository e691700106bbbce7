import './style.css'
import { message } from './message.js'

const show = (text) => (document.querySelector('#message').innerText = text)

show(message)
import.meta.hot.accept('./message.js', (changed) => show(changed.message))
